"""How much slower everything is allowed to be here: the sanitizers check every access."""

from __future__ import annotations

import os

SLOWER = 10 if "asan" in os.environ.get("LD_PRELOAD", "") else 1
