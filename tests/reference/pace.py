"""How much slower everything is allowed to be here.

The bounds are of a quiet machine, and what they guard against takes many times as long: work that grows with the
square of the input. A machine whose processors do other work too may take three times as long, and the sanitizers,
which check every access, ten.
"""

from __future__ import annotations

import os

SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
SLOWER = 10 if SANITIZED else 3

FEW_THREADS = {"MALLOC_ARENA_MAX": "2", "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
"""For a process whose address space is limited: every thread takes some, and many processors have many threads."""
