"""Run one target under atheris: ``python fuzz/run.py TARGET CORPUS [options of libFuzzer]``.

Coverage is that of the Python code of ``pqext.core``, ``pqext.variant``, ``pqext.geo`` and ``pqext.skipping.format``,
and of the kernels where they are built for it (see README.md).
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import atheris

with atheris.instrument_imports(include=["pqext.core", "pqext.variant", "pqext.geo", "pqext.skipping.format"]):
    import targets
    from variant_targets import STACK

    import pqext.core
    import pqext.geo
    import pqext.skipping.format
    import pqext.variant

    # Modules that load others when they are needed would load them without instruments.
    for package in (pqext.core, pqext.variant, pqext.geo, pqext.skipping.format):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".kernels." not in module.name:
                importlib.import_module(module.name)


def main() -> None:
    """Hand the target to libFuzzer."""
    name = sys.argv.pop(1)
    sys.setrecursionlimit(STACK)
    atheris.Setup(sys.argv, targets.TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
