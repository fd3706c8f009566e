# Reader of GeoJSON objects: members of a geometry or a feature, and the output.
from libc.stdint cimport uint8_t

from pqext.core.kernels.buffer cimport Bytes
from pqext.geo.kernels.json_scan cimport Scan


cdef enum GeojsonFault:
    # In addition to the faults of `json_scan`. RETRY is not a fault: the dimensions differ from the assumed ones.
    RETRY = 16
    NO_OBJECT
    NO_TYPE
    UNKNOWN_TYPE
    MISSING
    TWICE
    POSITION
    ARRAY
    OPEN_RING
    TOO_DEEP
    TOO_MANY
    NO_FEATURE
    TRAILING_TEXT

    FEATURE = 8
    FEATURE_COLLECTION = 9


cdef struct Reader:
    Scan s
    Bytes *out
    int dims        # 0 for XY, 1 for XYZ: assumed from the previous value
    bint has_z      # a position has three numbers


cdef struct Members:
    # Start of the values of an object's members, NULL if missing.
    int type
    const uint8_t *coordinates
    const uint8_t *geometries
    const uint8_t *geometry
    const uint8_t *properties
    const uint8_t *id
    const uint8_t *features
    const uint8_t *crs
    const uint8_t *end


cdef int read_members(Reader *r, Members *m) noexcept nogil
cdef int read_geometry_or_null(Reader *r, bint feature, bint *valid) noexcept nogil
cdef object geojson_error(int status, object row, object offset)
