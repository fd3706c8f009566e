"""Files outside the local file system: in object stores, on web servers and on other file systems."""
