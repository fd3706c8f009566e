"""Files and byte ranges: local paths, object stores, locks, and atomic writes."""
