# Where edges on the globe run: the shape of the globe, and what a geometry's edges reach.
from pqext.geo.kernels.paths cimport Path


cdef enum:
    SPANS = 1024  # separate ranges of longitude in one geometry


cdef struct Globe:
    double e2  # squared eccentricity, 0 for a sphere and for what is longer than it is wide
    double ratio  # polar axis by equatorial axis
    double turn  # maximum error of the algorithm in the azimuth of an edge, in radians
    double stretch  # maximum factor of longitudes on the auxiliary sphere
    double quick  # maximum degrees that an edge rises, per squared degree of its width
    double tie  # what part of half the globe makes it doubtful which side of a ring is the smaller


cdef struct Span:
    double west  # at most east: spans that cross the antimeridian are stored as two
    double east


cdef struct Extent:
    double south
    double north
    bint south_pole
    bint north_pole
    bint around  # every longitude
    int count
    Span spans[SPANS]


cdef void globe_set(Globe *globe, double e2, double ratio, double turn) noexcept nogil
cdef void extent_begin(Extent *extent, double south, double north) noexcept nogil
cdef void extent_add(const Globe *globe, Extent *extent, const Path *path) noexcept nogil
cdef void extent_longitudes(Extent *extent, double *west, double *east) noexcept nogil


cdef inline double clamped(double value, double most) noexcept nogil:
    """A longitude or latitude that rounding has put beyond the end of its range: at the end. NaN stays."""
    return most if value > most else -most if value < -most else value
