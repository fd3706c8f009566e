"""Which files a scan reads: those of folders and patterns that count, opened in their order."""
