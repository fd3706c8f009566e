# cython: language_level=3
# Which field of an object of a known shape goes to which child of a node of the shredding plan.
from libc.stdint cimport int32_t, uint32_t, uint64_t

from pqext.core.kernels.buffer cimport Bytes
from pqext.variant.kernels.json_names cimport Names
from pqext.variant.kernels.shredding cimport ShreddingPlan


cdef struct Route:
    # Of a shape; worked out anew when the shape is met at another node.
    int32_t node         # of the plan, less than 0 before it was worked out
    uint32_t residual    # number of fields that are no children of the node
    uint64_t start       # index in fields


cdef struct Routes:
    Bytes routes         # a Route a shape
    Bytes fields         # for each field of a shape, in the order of the text, its child, or -1 less its
                         # place among the residual fields in the order of their names
    uint64_t forgotten   # as in Names when the routes were made


cdef void routes_free(Routes *routes) noexcept nogil
cdef int route_make(
    Routes *routes, const Names *names, ShreddingPlan plan, uint32_t shape, int32_t node
) noexcept nogil
cdef int32_t child_of(const Names *names, ShreddingPlan plan, int32_t node, uint32_t key) noexcept nogil


cdef inline const Route *route_of(
    Routes *routes, const Names *names, ShreddingPlan plan, uint32_t shape, int32_t node
) noexcept nogil:
    """The route of objects of `shape`, which is ordered, at `node`; NULL when memory is out."""
    cdef const Route *route
    if routes.forgotten == names.forgotten and shape < routes.routes.size // sizeof(Route):
        route = <const Route *> routes.routes.data + shape
        if route.node == node:
            return route
    if route_make(routes, names, plan, shape, node) != 0:
        return NULL
    return <const Route *> routes.routes.data + shape
