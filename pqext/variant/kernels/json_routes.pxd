# cython: language_level=3
# Which field of an object of a known shape goes to which child of a node of the shredding plan.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pqext.core.kernels.buffer cimport Bytes
from pqext.variant.kernels.json_names cimport Names, Table
from pqext.variant.kernels.shredding cimport ShreddingPlan


cdef enum:
    MAX_ROUTE_BYTES = 1 << 26    # at which routes are forgotten between two rows


cdef struct Route:
    # Of a shape at a node of the plan.
    uint32_t shape
    int32_t node
    uint32_t residual    # number of fields that are no children of the node
    uint64_t start       # index in fields


cdef struct Target:
    # Where a key's field went last.
    int32_t node         # one more than the number of the node, 0 before there was one
    int32_t child        # of the node, or -1


cdef struct Routes:
    Bytes routes
    Bytes last           # for each shape one more than the number of the route used last, 0 before there is one
    Bytes fields         # for each field of a shape, in the order of the text, its child, or -1 less its
                         # place among the residual fields in the order of their names
    Bytes targets        # a Target a key
    Table table
    uint64_t forgotten   # as in Names when the routes were made


cdef void routes_free(Routes *routes) noexcept nogil
cdef void routes_forget(Routes *routes) noexcept nogil
cdef int64_t route_find(
    Routes *routes, const Names *names, ShreddingPlan plan, uint32_t shape, int32_t node
) noexcept nogil
cdef int64_t target_find(
    Routes *routes, const Names *names, ShreddingPlan plan, int32_t node, uint32_t key
) noexcept nogil


cdef inline void routes_next_row(Routes *routes, const Names *names) noexcept nogil:
    """Begin a row that has been parsed: what is out of date or has grown too large is forgotten."""
    if routes.forgotten != names.forgotten or routes.fields.size + routes.routes.size > MAX_ROUTE_BYTES:
        routes_forget(routes)
        routes.forgotten = names.forgotten


cdef inline const Route *route_of(
    Routes *routes, const Names *names, ShreddingPlan plan, uint32_t shape, int32_t node
) noexcept nogil:
    """The route of objects of `shape`, which is ordered, at `node`; NULL when memory is out."""
    cdef const Route *route
    cdef int64_t index
    if shape < routes.last.size // sizeof(uint32_t):
        index = (<const uint32_t *> routes.last.data)[shape]
        if index:
            route = <const Route *> routes.routes.data + (index - 1)
            if route.node == node:
                return route
    index = route_find(routes, names, plan, shape, node)
    return <const Route *> routes.routes.data + index if index >= 0 else NULL


cdef inline int64_t child_of(
    Routes *routes, const Names *names, ShreddingPlan plan, int32_t node, uint32_t key
) noexcept nogil:
    """The child of an object's node that has the name of `key`, -1 when it has none, or FAULT_MEMORY less one."""
    cdef const Target *target
    if key < routes.targets.size // sizeof(Target):
        target = <const Target *> routes.targets.data + key
        if target.node == node + 1:
            return target.child
    return target_find(routes, names, plan, node, key)
