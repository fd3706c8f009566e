"""Only for other kernels: see the `.pxd`."""
