"""Parse JSON text into variants and write variants as JSON: documents, lines and files."""
