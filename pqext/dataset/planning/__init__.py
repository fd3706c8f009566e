"""Plan the byte ranges to read from a file and the stages that read them. Record the reason for each skipped part."""
