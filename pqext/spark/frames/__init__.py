"""Functions that read and save data frames."""
