"""Plan which byte ranges of a file are read, in which stages, and record why the rest is skipped."""
