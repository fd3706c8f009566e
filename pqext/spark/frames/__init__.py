"""The functions that return and save data frames."""
