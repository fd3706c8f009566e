"""Options of reads and saves, checked and parsed."""
