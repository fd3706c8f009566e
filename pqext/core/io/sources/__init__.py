"""Where files lie that the operating system does not know: object stores, web servers, other file systems."""
