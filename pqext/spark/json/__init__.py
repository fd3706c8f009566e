"""JSON in lines and in columns of CSV files, read by tasks."""
