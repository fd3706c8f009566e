"""No more than what other kernels use: see the `.pxd` beside it."""
