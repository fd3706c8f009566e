"""Run the plans of a scan: decode row groups in stages and in parallel, and collect metrics."""
