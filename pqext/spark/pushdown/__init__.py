"""Conditions on data frames that prune row groups, by Spark's pushdown or in reads by pqext."""
