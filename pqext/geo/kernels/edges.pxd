# Where edges on the globe run: the shape of the globe, and what a geometry's edges reach.
from pqext.geo.kernels.paths cimport Path


cdef enum:
    SPANS = 1024  # maximum number of separate longitude ranges in one geometry


cpdef enum:
    # A box wraps only to become this much narrower, in degrees. The widest gap between points that are spread over the
    # globe can be at any meridian; a page box with points on both sides of it would cover all other longitudes.
    WORTH_WRAPPING = 36


cdef struct Globe:
    double e2  # squared eccentricity, 0 for a sphere or a prolate ellipsoid
    double ratio  # polar divided by equatorial axis
    double turn  # maximum error of the algorithm in the azimuth of an edge, in radians
    double stretch  # maximum factor of longitudes on the auxiliary sphere
    double quick  # maximum rise of an edge in degrees, per squared degree of its width
    double tie  # fraction of half the globe within which the smaller side of a ring is uncertain


cdef struct Span:
    double west  # at most east: a span that crosses the antimeridian is stored as two spans
    double east


cdef struct Extent:
    double south
    double north
    bint south_pole
    bint north_pole
    bint around  # the geometry covers every longitude
    int count
    Span spans[SPANS]


cdef void globe_set(Globe *globe, double e2, double ratio, double turn) noexcept nogil
cdef void extent_begin(Extent *extent, double south, double north) noexcept nogil
cdef void extent_add(const Globe *globe, Extent *extent, const Path *path) noexcept nogil
cdef void extent_longitudes(Extent *extent, double *west, double *east) noexcept nogil


cdef inline double clamped(double value, double most) noexcept nogil:
    """Move a longitude or latitude that is beyond the range because of rounding to the end of the range; NaN stays NaN.
    """
    return most if value > most else -most if value < -most else value
