# cython: language_level=3, cdivision=True
"""Extents of edges on a sphere or an ellipsoid of revolution; the proofs are in specs/geospatial.md.

Between two longitudes, an edge rises at most to the latitude of a great circle whose ends have the tangents of the same
latitudes and are `stretch` times as far apart in longitude. On a sphere this bound is exact.
"""
from libc.math cimport M_PI, atan, cos, fabs, rint, sin, sqrt, tan
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t
from libc.stdlib cimport qsort

from pqext.geo.kernels.paths cimport Path
from pqext.geo.kernels.wkb cimport load_double


cdef double RADIANS = M_PI / 180
# An edge at least this wide on the auxiliary sphere, in radians, is assumed to cross a pole.
cdef double HALF_TURN = M_PI - 2e-7
# An edge of at most this width on the auxiliary sphere, in degrees, rises by at most `quick` times its width squared.
cdef double NARROW = 28.0
# Rounding error in degrees of a latitude, and of a sum of two; see `reach` for larger errors.
cdef double ROUNDING = 1e-12
cdef double OPPOSITE = 1e-9
# Latitudes at least this high are at the pole, in degrees.
cdef double AT_POLE = 90.0 - 1e-9
# Latitudes nearer to the equator are replaced by this latitude, in degrees.
cdef double TINY = 1e-30
# A smaller rise, in degrees, is not computed: its bound is sufficient.
cdef double FINE = 1e-9
# Algorithms that miss directions do so by at most their `turn` on arcs up to RIGHT degrees, and by LONGER times that
# up to FAR; on longer ones they are not relied upon. COS_FAR is a little more than the cosine of FAR.
cdef double RIGHT = 90.0
cdef double LONGER = 20.0
cdef double FAR = 150.0
cdef double COS_FAR = -0.86602


cdef void globe_set(Globe *globe, double e2, double ratio, double turn) noexcept nogil:
    globe.e2 = e2 if e2 > 0 else 0.0
    globe.ratio = ratio
    globe.turn = turn
    globe.stretch = 1 / sqrt(1 - globe.e2)
    # Spec `geo.edges.rise`: w * w / (16 sqrt(cos(w / 2))) radians, for w of at most NARROW degrees.
    globe.quick = 1.12e-3 * globe.stretch * globe.stretch
    globe.tie = 0.02 + 2 * fabs(1 - ratio)


cdef void extent_begin(Extent *extent, double south, double north) noexcept nogil:
    """Begin the extent of a geometry whose vertices have latitudes from `south` to `north`."""
    extent.south = south
    extent.north = north
    extent.south_pole = south <= -AT_POLE
    extent.north_pole = north >= AT_POLE
    extent.around = False
    extent.count = 0


cdef int by_west(const void *one, const void *other) noexcept nogil:
    cdef double a = (<const Span *> one).west, b = (<const Span *> other).west
    return (a > b) - (a < b)


cdef void coalesce(Extent *extent, double gap) noexcept nogil:
    """Sort the spans, and merge spans that are at most `gap` apart."""
    cdef int i, last = 0
    cdef Span *spans = extent.spans
    if extent.count < 2:
        return
    qsort(spans, <size_t> extent.count, sizeof(Span), by_west)
    for i in range(1, extent.count):
        if spans[i].west - spans[last].east <= gap:
            if spans[i].east > spans[last].east:
                spans[last].east = spans[i].east
        else:
            last += 1
            spans[last] = spans[i]
    extent.count = last + 1


cdef inline void push(Extent *extent, double west, double east) noexcept nogil:
    cdef Span *last
    if extent.count:
        last = &extent.spans[extent.count - 1]
        if last.west <= west and east <= last.east:
            return
        if extent.count == SPANS:
            coalesce(extent, 720.0 / SPANS)  # leaves room for half as many
    extent.spans[extent.count].west = west
    extent.spans[extent.count].east = east
    extent.count += 1


cdef void span(Extent *extent, double west, double east) noexcept nogil:
    """Add the longitudes from `west` eastward to `east`. A span that touches the antimeridian is added on both sides.
    """
    if west <= east:
        push(extent, west, east)
        if west == -180.0:
            push(extent, 180.0, 180.0)
        if east == 180.0:
            push(extent, -180.0, -180.0)
    else:
        push(extent, west, 180.0)
        push(extent, -180.0, east)


cdef void extent_longitudes(Extent *extent, double *west, double *east) noexcept nogil:
    """Return the narrowest range that contains all spans; it wraps if that is narrower by `WORTH_WRAPPING`."""
    cdef int i
    cdef double gap = 0.0
    cdef Span *spans = extent.spans
    west[0] = -180.0
    east[0] = 180.0
    if extent.around or extent.north_pole or extent.south_pole or extent.count == 0:
        return
    coalesce(extent, 0.0)
    west[0] = spans[0].west
    east[0] = spans[extent.count - 1].east
    for i in range(1, extent.count):
        if spans[i].west - spans[i - 1].east > gap:
            gap = spans[i].west - spans[i - 1].east
            if 360.0 - gap <= spans[extent.count - 1].east - spans[0].west - WORTH_WRAPPING:
                west[0] = spans[i].west
                east[0] = spans[i - 1].east


cdef double reach(double high, double low, double width, double t) noexcept nogil:
    """Return the highest latitude of a great circle between two latitudes, `high` > 0 and `low`, `width` radians apart.

    `t` is the tangent of `high`, and not 0. The result is rounded upward: the error of the sine of `width` grows
    towards half a turn.
    """
    cdef double c = cos(width), ratio = tan(low * RADIANS) / t, slope
    if ratio <= c:
        return high  # the arc descends from its higher end
    slope = (ratio - c) / sin(width)
    return atan(t * sqrt(1 + slope * slope)) / RADIANS + ROUNDING + 1e-13 / (M_PI - width)


cdef inline double rise(double high, double low, double omega, double most, double north) noexcept nogil:
    """Return the highest latitude of an edge if it exceeds `north`, otherwise any latitude of at most `north`."""
    cdef double found
    if high <= 0 or high + most <= north:
        return high
    if most <= FINE:
        return high + most
    if high < TINY:
        high = TINY  # whose tangent is not 0
    found = reach(high, low, omega, tan(high * RADIANS))
    return found if found < high + most else high + most


cdef inline double widest(const Globe *globe, double low, double high, double width) noexcept nogil:
    """Return the maximum width in radians of the image of an edge on the auxiliary sphere."""
    cdef double t, least
    if globe.e2 == 0:
        return width * RADIANS
    if low <= 0 <= high:
        return width * RADIANS * globe.stretch
    least = fabs(low) if fabs(low) < fabs(high) else fabs(high)
    t = globe.ratio * tan(least * RADIANS)
    return width * RADIANS / sqrt(1 - globe.e2 / (1 + t * t))


cdef double edge(const Globe *globe, Extent *extent, double y1, double y2, double width) noexcept nogil:
    """Widen the latitudes by an edge of `width` degrees of longitude.

    Return its maximum deviation in longitude, in degrees.
    """
    cdef double high = y1 if y1 > y2 else y2, low = y2 if y1 > y2 else y1
    cdef double omega, most, margin = 0.0, length, upper, lower
    if high >= 90.0 or low <= -90.0:
        return 0.0  # along a meridian
    if globe.turn > 0:
        # Bound: along the parallel of the end that is nearer to a pole, then along a meridian.
        length = 1.01 * width
        if length > 1.0:
            length *= cos((high if high > -low else low) * RADIANS)
        length += high - low
        if length > FAR and (
            sin(high * RADIANS) * sin(low * RADIANS)
            + cos(high * RADIANS) * cos(low * RADIANS) * cos(width * RADIANS) < COS_FAR
        ):
            extent.north_pole = extent.south_pole = True
            return 0.0
        margin = globe.turn * length if length <= RIGHT else LONGER * globe.turn * length
    if width * globe.stretch <= NARROW:
        most = globe.quick * width * width + 1e-13
        if high + most + margin <= extent.north and low - most - margin >= extent.south:
            return margin
        omega = widest(globe, low, high, width) if most > FINE else 0.0
        upper = rise(high, low, omega, most, extent.north - margin)
        lower = -rise(-low, -high, omega, most, -extent.south - margin)
    else:
        omega = widest(globe, low, high, width)
        if omega >= HALF_TURN:
            if high + low > -OPPOSITE:
                extent.north_pole = True
            if high + low < OPPOSITE:
                extent.south_pole = True
            return 0.0
        upper = rise(high, low, omega, 180.0, -180.0)
        lower = -rise(-low, -high, omega, 180.0, -180.0)
    if upper + margin > extent.north:
        extent.north = upper + margin
    if lower - margin < extent.south:
        extent.south = lower - margin
    if extent.north >= AT_POLE:
        extent.north_pole = True
    if extent.south <= -AT_POLE:
        extent.south_pole = True
    return margin


cdef inline double shorter(double turn) noexcept nogil:
    """Return a difference of longitudes as a turn of at most half a circle, in degrees."""
    return turn - 360.0 if turn > 180.0 else turn + 360.0 if turn < -180.0 else turn


cdef void ring_poles(const Globe *globe, Extent *extent, const Path *path) noexcept nogil:
    """Mark the poles on the smaller side of a ring, or both poles if the sides are nearly equal.

    Sums longitude differences and the area between the ring and the equator. A ring that touches a pole passes it by
    the shorter turn.
    """
    cdef size_t i, start = 0
    cdef const uint8_t *p
    cdef double x, y, lon = 0.0, lat = 0.0, turn, winding = 0.0, area = 0.0, half, other
    cdef bint begun = False, at_pole = False
    cdef double pole = 0.0
    i = 0
    while i <= path.count:
        # From the first vertex that is not a pole, once around the ring.
        if not begun and i == path.count:
            return
        p = path.first + ((start + i) % path.count) * path.stride
        x = clamped(load_double(p, path.little), 180.0)
        y = clamped(load_double(p + 8, path.little), 90.0)
        i += 1
        if x != x or y != y:
            continue
        if fabs(y) >= 90.0:
            at_pole = begun
            pole = 1.0 if y > 0 else -1.0
            continue
        if not begun:
            begun = True
            start = i - 1
            i = 1
            lon = x
            lat = y * RADIANS
            continue
        turn = shorter(x - lon) * RADIANS
        if at_pole:
            area += pole * turn
        elif turn != 0:
            half = tan(lat / 2)
            other = tan(y * RADIANS / 2)
            if half * other > -1:  # otherwise the edge runs from pole to pole
                area += 2 * atan(tan(turn / 2) * (half + other) / (1 + half * other))
        winding += turn
        lon = x
        lat = y * RADIANS
        at_pole = False
    winding = rint(winding / (2 * M_PI))
    half = 2 * M_PI * globe.tie
    if winding == 0:
        if fabs(area) > 2 * M_PI - half:  # the side that contains both poles is the larger one
            extent.north_pole = extent.south_pole = True
        return
    if fabs(winding) > 1 or winding * area > -half:
        extent.north_pole = True
    if fabs(winding) > 1 or winding * area < half:
        extent.south_pole = True


cdef struct Track:
    # Longitudes of a path. A vertex is `lap` turns plus its longitude east of the start of the first lap.
    # Laps are compared first, then longitudes, both exactly.
    long lap
    double low  # of this lap
    double high
    long low_lap  # lowest of all previous laps
    long high_lap
    double lowest
    double highest


cdef inline void track_lap(Track *track, long by, double x) noexcept nogil:
    """End a lap, and begin the next lap at `x`."""
    if track.lap < track.low_lap or (track.lap == track.low_lap and track.low < track.lowest):
        track.low_lap = track.lap
        track.lowest = track.low
    if track.lap > track.high_lap or (track.lap == track.high_lap and track.high > track.highest):
        track.high_lap = track.lap
        track.highest = track.high
    track.lap += by
    track.low = track.high = x


cdef inline void extent_span(Extent *extent, const Track *track, double margin) noexcept nogil:
    """Add the longitudes of a path whose laps are complete. Its edges may deviate by `margin` degrees."""
    cdef double low = track.lowest, high = track.highest, swing = 0.0, c
    cdef double width = 360.0 * <double> (track.high_lap - track.low_lap) + (high - low)
    if margin > 0:
        c = -extent.south if -extent.south > extent.north else extent.north
        c = cos(c * RADIANS)
        swing = margin / c if c * 180.0 > margin else 180.0
    if width >= 360.0 or (swing > 0 and width + 2 * swing > 359.9):
        extent.around = True
        return
    if swing > 0:
        low -= swing
        high += swing
        low = low + 360.0 if low < -180.0 else low
        high = high - 360.0 if high > 180.0 else high
    span(extent, low, high)


cdef void extent_add(const Globe *globe, Extent *extent, const Path *path) noexcept nogil:
    """Widen the extent by a point, a line string or a ring. NaN vertices are skipped."""
    cdef size_t i
    cdef const uint8_t *p = path.first
    cdef double x, y, width, found, most, margin = 0.0, narrow = NARROW / globe.stretch
    cdef double first_x = 0.0, first_y = 0.0, last_x = 0.0, last_y = 0.0
    cdef Track track
    cdef bint begun = False, exact = globe.turn == 0
    for i in range(path.count + path.ring):
        if i < path.count:
            x = clamped(load_double(p, path.little), 180.0)
            y = clamped(load_double(p + 8, path.little), 90.0)
            p += path.stride
        else:
            x = first_x  # a ring is closed
            y = first_y
        if begun and exact:
            # Most common case: an edge that is too short to rise above the latitudes of the vertices. Not for NaN.
            width = x - last_x
            most = globe.quick * width * width + 1e-13
            if (
                -narrow <= width <= narrow
                and y + most <= extent.north and last_y + most <= extent.north
                and y - most >= extent.south and last_y - most >= extent.south
            ):
                track.low = x if x < track.low else track.low
                track.high = x if x > track.high else track.high
                last_x = x
                last_y = y
                continue
        if x != x:
            continue
        if y != y:
            span(extent, x, x)
            continue
        if not begun:
            if i == path.count:
                return
            begun = True
            track.lap = track.low_lap = track.high_lap = 0
            track.low = track.high = track.lowest = track.highest = first_x = x
            first_y = y
        else:
            width = x - last_x
            if width > 180.0:
                track_lap(&track, -1, x)
                width = 360.0 - width
            elif width < -180.0:
                track_lap(&track, 1, x)
                width += 360.0
            else:
                width = fabs(width)
                track.low = x if x < track.low else track.low
                track.high = x if x > track.high else track.high
            if width > 0:
                found = edge(globe, extent, last_y, y, width)
                margin = found if found > margin else margin
        last_x = x
        last_y = y
    if not begun:
        return
    if path.ring and (track.lap != 0 or track.low_lap != track.high_lap or track.high - track.low > 180.0
                      or extent.north_pole or extent.south_pole):
        ring_poles(globe, extent, path)
    track_lap(&track, 0, last_x)
    extent_span(extent, &track, margin)
