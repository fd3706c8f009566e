"""Find the files of folders and patterns, and open them in order."""
