"""Files of a folder written together: parts, partitions, and the commit that makes all of them visible."""
