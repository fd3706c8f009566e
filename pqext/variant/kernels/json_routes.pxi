# Routes of fields to columns: names are compared once a shape, not once a row.
# Which field of an object of a known shape goes to which child of a node of the shredding plan.

cdef enum:
    MAX_ROUTE_BYTES = 1 << 26    # at which routes are forgotten between two rows


cdef struct Route:
    # Of a shape at a node of the plan.
    uint32_t shape
    int32_t node
    uint32_t residual    # number of fields that are not children of the node
    uint64_t start       # index in fields


cdef struct Target:
    # Where a key's field went last.
    int32_t node         # number of the node plus 1, 0 if unset
    int32_t child        # child of the node, or -1


cdef struct Routes:
    Bytes routes
    Bytes last           # for each shape, the number of the last used route plus 1, 0 if unset
    Bytes fields         # for each field of a shape, in the order of the text, its child, or -1 less its
                                                  # rank among the residual fields in the order of their names
    Bytes targets        # a Target for each key
    Table table
    uint64_t forgotten   # as in Names when the routes were made


cdef inline void routes_next_row(Routes *routes, const Names *names) noexcept nogil:
    """Begin a row that has been parsed; outdated or excessively large caches are cleared."""
    if routes.forgotten != names.forgotten or routes.fields.size + routes.routes.size > MAX_ROUTE_BYTES:
        routes_forget(routes)
        routes.forgotten = names.forgotten


cdef inline const Route *route_of(
    Routes *routes, const Names *names, ShreddingPlan plan, uint32_t shape, int32_t node
) noexcept nogil:
    """Return the route of objects of `shape`, which is ordered, at `node`; NULL if memory is exhausted."""
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
    """Return the child of an object node with the name of `key`; -1 if there is none, or FAULT_MEMORY - 1."""
    cdef const Target *target
    if key < routes.targets.size // sizeof(Target):
        target = <const Target *> routes.targets.data + key
        if target.node == node + 1:
            return target.child
    return target_find(routes, names, plan, node, key)


cdef void routes_free(Routes *routes) noexcept nogil:
    bytes_free(&routes.routes)
    bytes_free(&routes.last)
    bytes_free(&routes.fields)
    bytes_free(&routes.targets)
    free(routes.table.slots)


cdef void routes_forget(Routes *routes) noexcept nogil:
    routes.routes.size = 0
    routes.last.size = 0
    routes.fields.size = 0
    routes.targets.size = 0
    free(routes.table.slots)
    memset(&routes.table, 0, sizeof(Table))


cdef int64_t target_find(
    Routes *routes, const Names *names, ShreddingPlan plan, int32_t node, uint32_t key
) noexcept nogil:
    """Find the name of a key among the children of a node, like `child_of`."""
    cdef int32_t rank = plan_rank(plan, key_name(names, key), names.keys[key].length)
    cdef int32_t low = plan.nodes[node].first_child
    cdef int32_t stop = low + plan.nodes[node].child_count
    cdef int32_t high = stop, middle
    cdef Target *target
    if bytes_zero_to(&routes.targets, (<size_t> key + 1) * sizeof(Target)) != 0:
        return FAULT_MEMORY - 1
    while rank >= 0 and low < high:
        middle = low + (high - low) // 2
        if plan.nodes[middle].name < rank:
            low = middle + 1
        else:
            high = middle
    target = <Target *> routes.targets.data + key
    target.node = node + 1
    target.child = low if rank >= 0 and low < stop and plan.nodes[low].name == rank else -1
    return target.child


cdef int64_t route_find(
    Routes *routes, const Names *names, ShreddingPlan plan, uint32_t shape, int32_t node
) noexcept nogil:
    """Return the number of the route of a shape at a node, creating it if necessary; or FAULT_MEMORY."""
    cdef uint64_t h = mix(mix(names.seed, shape), <uint32_t> node)
    cdef uint32_t hash = <uint32_t> mix(h, h >> 29)
    cdef uint32_t at, index
    cdef const Route *route
    cdef size_t size = (<size_t> shape + 1) * sizeof(uint32_t)
    if bytes_zero_to(&routes.last, size) != 0:
        return FAULT_MEMORY
    if routes.table.slots != NULL:
        at = hash & routes.table.mask
        while routes.table.slots[at].index:
            index = routes.table.slots[at].index - 1
            route = <const Route *> routes.routes.data + index
            if routes.table.slots[at].hash == hash and route.shape == shape and route.node == node:
                (<uint32_t *> routes.last.data)[shape] = index + 1
                return index
            at = (at + 1) & routes.table.mask
    index = <uint32_t> (routes.routes.size // sizeof(Route))
    if index == 0xFFFFFFFFU or route_make(routes, names, plan, shape, node) != 0:
        return FAULT_MEMORY
    if table_add(&routes.table, hash, index) != 0:
        return FAULT_MEMORY
    (<uint32_t *> routes.last.data)[shape] = index + 1
    return index


cdef int route_make(
    Routes *routes, const Names *names, ShreddingPlan plan, uint32_t shape, int32_t node
) noexcept nogil:
    """Compute the route of a shape at a node, and append it. Return 0 or FAULT_MEMORY."""
    cdef const Shape *path = &names.shapes[shape]
    cdef const uint16_t *order = names.orders + path.order
    cdef uint32_t depth = path.depth, i = path.depth, at = shape
    cdef int32_t children[MAX_SHAPE_DEPTH]   # in the order of names
    cdef int64_t child
    cdef int32_t *fields
    cdef Route route
    route.shape = shape
    route.node = node
    route.residual = 0
    route.start = routes.fields.size // sizeof(int32_t)
    if bytes_reserve(&routes.fields, <size_t> depth * sizeof(int32_t)) != 0:
        return FAULT_MEMORY
    fields = <int32_t *> (routes.fields.data + routes.fields.size)
    while i > 0:
        i -= 1
        child = child_of(routes, names, plan, node, names.shapes[at].key)
        if child < -1:
            return FAULT_MEMORY
        children[order[i]] = <int32_t> child
        at = names.shapes[at].parent
    for i in range(depth):
        if children[i] < 0:
            children[i] = -1 - <int32_t> route.residual
            route.residual += 1
    for i in range(depth):
        fields[i] = children[order[i]]
    routes.fields.size += <size_t> depth * sizeof(int32_t)
    return 0 if bytes_append(&routes.routes, &route, sizeof(Route)) == 0 else FAULT_MEMORY
