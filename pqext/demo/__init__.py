"""Demo job from end to end: convert JSON lines to shredded Parquet on Spark, query it, and compare other readers."""
