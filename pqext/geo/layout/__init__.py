"""Where rows of geometries lie in a file: order along a curve, cuts, and what a query will read."""
