"""Data-skipping stores in Spark: given to reads, built and refreshed by tasks, and asked for files of other formats."""
