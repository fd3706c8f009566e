"""JSON text into variants and out of them: documents, lines, files."""
