"""Many files as one table: the columns of their folders, one schema, and what each file is asked for."""
