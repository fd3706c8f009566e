"""How the tests' Spark sessions are quick to start and to run."""

from __future__ import annotations

import os
from pathlib import Path

QUICK_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Tests end before Java's second compiler pays off."""

_inherited = os.environ.get("PYTHONPATH")
QUICK_WORKERS = {
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).with_name("workers")), *([_inherited] if _inherited else [])])
}
"""Python workers begin with what they import: ``workers/sitecustomize.py``."""
