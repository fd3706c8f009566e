"""Extents of edges on the globe, for other kernels such as :mod:`pqext.geo.kernels.edge_boxes`."""

WORTH_WRAPPING: int
"""Minimum reduction in width, in degrees, that makes a box wrap: a tenth of the globe."""
