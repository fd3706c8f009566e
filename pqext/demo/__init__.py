"""Complete demo job: convert JSON lines to shredded Parquet on Spark, query the files, and compare other readers."""
