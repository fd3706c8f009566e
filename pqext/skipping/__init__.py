"""The data-skipping metadata store: what each file of a dataset holds, so that a query opens only those it needs."""
