"""No functions for Python: the kernels that shred share its columns."""
