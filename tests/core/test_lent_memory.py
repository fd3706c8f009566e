"""Memory that Arrow lends to a kernel is Arrow's to free, in whatever order objects are collected."""

from __future__ import annotations

import subprocess
import sys

_CYCLE = """
import gc
import numpy as np
from pqext.core.base.buffers import allocate
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder

gc.disable()
ends, indices = np.array([0, 3, 6], np.int32), np.array([0, 1, 0], np.int32)
for _ in range(50):
    told = {}
    builder = ByteArrayBuilder(told.get, allocate=allocate, expected=1000, slots=3)
    builder.append_lookup(b"abcdef", ends, indices, b"", 3)
    told["builder"] = builder
    del builder, told
    gc.collect()
print("alive")
"""


def test_builder_in_a_reference_cycle_frees_no_borrowed_memory() -> None:
    done = subprocess.run([sys.executable, "-c", _CYCLE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("alive\n", 0), done.stderr
