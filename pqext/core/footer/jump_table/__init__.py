"""Jump tables of footers: the table, look-ups with it, and the footer and schema that use them."""
