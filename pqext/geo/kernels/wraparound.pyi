from pqext.geo.kernels.wkb import WkbColumn

class Longitudes:
    """The planar x intervals of geometries, gathered over any number of columns."""

    def add(self, column: WkbColumn) -> None:
        """Enter every geometry of a column; raises GeometryError on bytes that are no geometry."""

    def widest_gap(self) -> tuple[float, float] | None:
        """West and east end of the widest stretch of [-180, 180] that no geometry's interval covers."""
