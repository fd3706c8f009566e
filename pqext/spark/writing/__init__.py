"""Writing data frames: how VARIANT is shredded, which files a task makes, and how a job becomes visible at once."""
