"""Read Arrow arrays from files: row groups, column chunks, pages and assembly of nested columns."""
