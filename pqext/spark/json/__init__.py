"""Read JSON lines, and JSON documents in CSV files, in Spark tasks."""
