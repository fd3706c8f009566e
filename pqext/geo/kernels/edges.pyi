"""Extents of edges on the globe, for other kernels such as :mod:`pqext.geo.kernels.edge_boxes`."""
