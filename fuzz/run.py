"""Run one target under atheris: ``python fuzz/run.py TARGET CORPUS [libFuzzer options]``.

Coverage of the Python code of ``pqext.core``, ``pqext.variant``, ``pqext.geo`` and ``pqext.skipping.format`` guides the
fuzzer, and that of the kernels if clang built them with instrumentation (see README.md).
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import atheris

with atheris.instrument_imports(include=["pqext.core", "pqext.variant", "pqext.geo", "pqext.skipping.format"]):
    import targets
    from variant_targets import RECURSION_LIMIT

    import pqext.core
    import pqext.geo
    import pqext.skipping.format
    import pqext.variant

    # Lazily imported modules would not be instrumented.
    for package in (pqext.core, pqext.variant, pqext.geo, pqext.skipping.format):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".kernels." not in module.name:
                importlib.import_module(module.name)


def main() -> None:
    """Run the target under libFuzzer."""
    name = sys.argv.pop(1)
    sys.setrecursionlimit(RECURSION_LIMIT)
    atheris.Setup(sys.argv, targets.TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
