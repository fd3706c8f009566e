"""Write data frames: shredding of VARIANT, files of tasks, and atomic commits of jobs."""
