"""Layout of geometries in a file: order along a curve, row group and page boundaries, and query cost."""
