"""Write Arrow tables to files: leaves, pages, column chunks and row groups."""
