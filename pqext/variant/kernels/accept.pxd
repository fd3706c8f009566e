# cython: language_level=3
# Is a value valid beyond doubt? Quick for values as writers make them; what is accepted keeps every rule that
# `validate` checks. What is not accepted may still be valid: `validate` looks at it rule by rule, and says which is broken.
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pqext.variant.kernels.binary cimport Container, Metadata


cdef struct Frame:
    # A container that is not at its end, while one of its children is looked at.
    Container container
    const uint8_t *p         # the next child as they lie, of which `i` came before it
    uint32_t i
    bint in_order            # the offsets of these are those at which they lie
    size_t base              # of its starts


cdef struct Acceptance:
    # Memory that values share; to be zeroed before the first.
    Frame *frames
    size_t frames_capacity
    uint32_t *starts         # of the children of all open containers, as they lie
    size_t starts_capacity
    uint64_t *marks          # a bit for each byte of a container's values, set while starts and offsets are compared
    size_t marks_capacity


cdef void acceptance_free(Acceptance *a) noexcept nogil
cdef bint accept_value(
    Acceptance *a, const Metadata *metadata, const uint8_t *p, size_t n, uint32_t max_depth, const uint8_t *readable
) noexcept nogil
