"""Reading Parquet into data frames: what is asked for, what is planned, and what each task or engine does of it."""
