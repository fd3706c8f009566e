"""What is read of a file, in which stages, and why the rest is not: as a value that explains itself."""
