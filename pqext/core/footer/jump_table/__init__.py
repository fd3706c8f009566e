"""Jump tables of footers: build and read the table, and use it to look up structures and schema columns."""
