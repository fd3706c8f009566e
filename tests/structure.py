"""Report the modules, lines and upward imports of each folder of a package.

    python tests/structure.py                  # pqext.core and pqext.spark
    python tests/structure.py pqext.dataset

An arrow is a module that imports one of another folder. Folders are listed in the order that leaves the fewest arrows
upward, from a folder to one listed after it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from test_layers import MODULES, NAMES, imports

Arrows = Counter[tuple[str, str]]


def folder(module: str, package: str) -> str:
    """The folder of ``package`` that holds ``module``; ``.`` is the package itself."""
    first, _, rest = module.removeprefix(f"{package}.").partition(".")
    is_folder = rest or any(name.startswith(f"{package}.{first}.") for name in NAMES)
    return first if is_folder and module != package else "."


def contents(package: str) -> dict[str, list[Path]]:
    """The files of each folder, without stubs and without those that only make a folder a package."""
    files: dict[str, list[Path]] = {}
    for name, path in MODULES.items():
        module = name.rpartition(".")[0]
        if module.startswith(f"{package}.") and path.suffix != ".pyi" and path.stem != "__init__":
            files.setdefault(folder(module, package), []).append(path)
    return files


def arrows(package: str) -> Arrows:
    """Count the imports between folders, each pair of modules once."""
    pairs = {
        (module, used)
        for name in MODULES
        for module in [name.rpartition(".")[0]]
        if module.startswith(f"{package}.")
        for used in imports(name)
        if used.startswith(f"{package}.")
    }
    counts = Counter((folder(module, package), folder(used, package)) for module, used in pairs)
    return Counter({pair: count for pair, count in counts.items() if len(set(pair)) == 2})


def upward(order: Sequence[str], counts: Arrows) -> Arrows:
    """The arrows from a folder to one after it in ``order``."""
    return Counter({pair: n for pair, n in counts.items() if order.index(pair[0]) < order.index(pair[1])})


def best_order(folders: Sequence[str], counts: Arrows) -> list[str]:
    """Move one folder at a time to its best position until no move helps."""
    order, least = sorted(folders), sum(counts.values()) + 1
    while (total := upward(order, counts).total()) < least:
        least = total
        for name in sorted(folders):
            others = [other for other in order if other != name]
            order = min(
                ([*others[:position], name, *others[position:]] for position in range(len(order))),
                key=lambda candidate: upward(candidate, counts).total(),
            )
    return order


def report(package: str) -> None:
    files, counts = contents(package), arrows(package)
    order = best_order(list(files), counts)
    print(f"{package}\n  {'folder':<16}{'modules':>8}{'lines':>8}")
    for name in order:
        lines = sum(len(path.read_text("utf-8").splitlines()) for path in files[name])
        print(f"  {name:<16}{len(files[name]):>8}{lines:>8}")
    above = upward(order, counts)
    print(f"  {above.total()} of {counts.total()} arrows run upward, {len(above)} of {len(counts)} pairs of folders")
    for (name, used), count in above.most_common():
        print(f"    {name} -> {used}: {count}")


def main() -> None:
    for package in sys.argv[1:] or ("pqext.core", "pqext.spark"):
        report(package)


if __name__ == "__main__":
    main()
