"""Read and write files outside the local file system: in object stores, on web servers and in other file systems."""
