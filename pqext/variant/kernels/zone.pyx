# cython: language_level=3
"""Time zones for the kernels that cast and print timestamps."""
from libc.stdint cimport int64_t, uintptr_t

import pyarrow as pa


cdef class Zone:
    """Transitions of a time zone as int64 arrays."""

    def __init__(self, instants, clocks, offsets, int64_t horizon):
        """Store the transitions: ascending `instants` and `clocks` of equal length, and one more of `offsets`, in
        seconds.

        None of them is null.
        """
        cdef int64_t count = len(instants)
        if len(clocks) != count or len(offsets) != count + 1:
            raise ValueError("a time zone must have one more offset than transitions")
        self.owner = [pa.array([*seconds, 0], pa.int64()).buffers()[1] for seconds in (instants, clocks, offsets)]
        self.table.count = count
        self.table.instants = <const int64_t *> <uintptr_t> self.owner[0].address
        self.table.clocks = <const int64_t *> <uintptr_t> self.owner[1].address
        self.table.offsets = <const int64_t *> <uintptr_t> self.owner[2].address
        self.table.horizon = horizon
