"""Edges on the globe, for other kernels; see :mod:`pqext.geo.kernels.edge_boxes`."""
