"""Text files to shredded Parquet by tasks, without a row in the JVM."""
