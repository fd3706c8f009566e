"""The main job from end to end: JSON lines to shredded Parquet on Spark, three questions, and who else agrees."""
