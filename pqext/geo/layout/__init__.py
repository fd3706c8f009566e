"""Layout of geometries in a file: order along a curve, splits into row groups and pages, and query cost."""
