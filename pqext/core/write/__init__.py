"""From Arrow tables to a file: leaves, pages, column chunks and row groups."""
