"""Convert text files to shredded Parquet in Spark tasks, without passing rows through the JVM."""
