"""Plans run: stage by stage within a row group, row groups ahead of the consumer, and what it took."""
