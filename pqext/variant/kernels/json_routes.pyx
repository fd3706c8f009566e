# cython: language_level=3
"""Routes of fields to columns: names are compared once a shape, not once a row."""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint16_t, uint32_t
from libc.string cimport memset

from pqext.core.kernels.buffer cimport bytes_free, bytes_reserve
from pqext.variant.kernels.binary cimport FAULT_MEMORY
from pqext.variant.kernels.json_names cimport MAX_SHAPE_DEPTH, Names, Shape, key_name
from pqext.variant.kernels.shredding cimport Node, ShreddingPlan, plan_rank


cdef void routes_free(Routes *routes) noexcept nogil:
    bytes_free(&routes.routes)
    bytes_free(&routes.fields)


cdef int32_t child_of(const Names *names, ShreddingPlan plan, int32_t node, uint32_t key) noexcept nogil:
    """The child of an object's node that has the name of `key`, or -1."""
    cdef int32_t rank = plan_rank(plan, key_name(names, key), names.keys[key].length)
    cdef int32_t low = plan.nodes[node].first_child
    cdef int32_t stop = low + plan.nodes[node].child_count
    cdef int32_t high = stop, middle
    if rank < 0:
        return -1
    while low < high:
        middle = low + (high - low) // 2
        if plan.nodes[middle].name < rank:
            low = middle + 1
        else:
            high = middle
    return low if low < stop and plan.nodes[low].name == rank else -1


cdef int route_make(
    Routes *routes, const Names *names, ShreddingPlan plan, uint32_t shape, int32_t node
) noexcept nogil:
    """Work out the route of a shape at a node; 0 or FAULT_MEMORY."""
    cdef const Shape *path = &names.shapes[shape]
    cdef const uint16_t *order = names.orders + path.order
    cdef uint32_t depth = path.depth, i, at = shape, residual = 0
    cdef size_t known = routes.routes.size // sizeof(Route)
    cdef int32_t children[MAX_SHAPE_DEPTH]   # by place in the order of names
    cdef int32_t *fields
    cdef Route *route
    if routes.forgotten != names.forgotten:
        routes.forgotten = names.forgotten
        routes.routes.size = 0
        routes.fields.size = 0
        known = 0
    if shape >= known:
        if bytes_reserve(&routes.routes, (<size_t> names.shapes_count - known) * sizeof(Route)) != 0:
            return FAULT_MEMORY
        memset(routes.routes.data + routes.routes.size, 0xFF, (<size_t> names.shapes_count - known) * sizeof(Route))
        routes.routes.size = <size_t> names.shapes_count * sizeof(Route)
    route = <Route *> routes.routes.data + shape
    if route.node < 0:
        route.start = routes.fields.size // sizeof(int32_t)
        if bytes_reserve(&routes.fields, <size_t> depth * sizeof(int32_t)) != 0:
            return FAULT_MEMORY
        routes.fields.size += <size_t> depth * sizeof(int32_t)
    fields = <int32_t *> routes.fields.data + route.start
    i = depth
    while i > 0:
        i -= 1
        children[order[i]] = child_of(names, plan, node, names.shapes[at].key)
        at = names.shapes[at].parent
    for i in range(depth):
        if children[i] < 0:
            children[i] = -1 - <int32_t> residual
            residual += 1
    for i in range(depth):
        fields[i] = children[order[i]]
    route.node = node
    route.residual = residual
    return 0
