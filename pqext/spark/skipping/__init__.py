"""Data-skipping stores in Spark: build and refresh stores in tasks, and prune files of any format."""
