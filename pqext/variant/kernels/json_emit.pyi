"""No functions for Python: the kernels that read JSON share its functions."""
