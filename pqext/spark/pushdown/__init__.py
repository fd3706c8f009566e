"""Conditions on the columns of data frames that Spark can push to the statistics of files."""
