"""Read Parquet into data frames: queries, plans, and the tasks and engines that execute them."""
