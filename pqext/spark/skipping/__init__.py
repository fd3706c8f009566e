"""Data-skipping stores in Spark: used in reads, built and refreshed by tasks, queried for files of other formats."""
