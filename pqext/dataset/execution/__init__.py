"""Run plans: stage by stage within a row group, ahead of the consumer, and with metrics."""
