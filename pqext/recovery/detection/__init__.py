"""What the bytes of a damaged file still hold: footers, pages, and the leaves that pages can belong to."""
