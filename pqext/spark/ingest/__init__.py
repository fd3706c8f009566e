"""Convert text files to shredded Parquet in tasks, without rows in the JVM."""
