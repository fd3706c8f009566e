"""Imports point down: kernels, core, variant and geo, dataset, then the command line, Spark and skipping."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "pqext"

# A module belongs to the longest prefix that fits it. It may import what lies in its own layer or in those listed.
FOUNDATION = {"pqext.core.base.errors", "pqext.core.base.limits", "pqext.core.base.text"}
CORE_LAYERS = (
    "base", "io", "format", "options", "schema", "encryption", "indexes", "footer", "read", "write", "files"
)
"""Folders of ``pqext.core``, each of which may import those before it."""
KERNELS = "pqext.core.kernels"
CORE = {*FOUNDATION, KERNELS, "pqext.core", *(f"pqext.core.{name}" for name in CORE_LAYERS)}
VALUES = {"pqext.variant", "pqext.geo"}
BELOW = CORE | VALUES
ROOMS = {
    f"pqext.dataset.{name}": {f"pqext.dataset.{used}" for used in below.split()}
    for name, below in {
        "files": "",
        "expressions": "",
        "kernels": "",
        "presentation": "kernels",
        "engines": "expressions presentation",
        "evaluation": "expressions",
        "notations": "expressions evaluation",
        "pruning": "expressions evaluation",
        "planning": "expressions evaluation notations pruning",
        "execution": "expressions evaluation planning",
        "table": "expressions evaluation files pruning planning",
        "writing": "files table",
    }.items()
}
"""Folders of ``pqext.dataset``, and those of them that each may import."""
DATASET = BELOW | {"pqext.dataset", *ROOMS}
RECOVERY_LAYERS = ("detection", "candidates", "row_groups", "schemas")
"""Folders of ``pqext.recovery``, each of which may import those before it."""
RECOVERY = {"pqext.recovery", *(f"pqext.recovery.{name}" for name in RECOVERY_LAYERS)}
SKIPPING_LAYERS = ("kernels", "format", "indexes", "store", "maintenance")
"""Folders of ``pqext.skipping``, each of which may import those before it."""
SKIPPING = {"pqext.skipping", *(f"pqext.skipping.{name}" for name in SKIPPING_LAYERS)}
SPARK_LAYERS = (
    "base", "functions", "columns", "pushdown", "options", "reading", "writing", "json", "streams", "sources", "frames",
    "skipping", "joins", "ingest",
)
"""Folders of ``pqext.spark``, each of which may import those before it."""
TABLES = {"pqext.tables", "pqext.tables.delta", "pqext.tables.iceberg"}
BELOW_SPARK = DATASET | SKIPPING | TABLES
SPARK = {"pqext.spark", *(f"pqext.spark.{name}" for name in SPARK_LAYERS)}
TOOLS = RECOVERY | {"pqext.inspection", "pqext.verification", "pqext.report", "pqext.examples"}
ALLOWED: dict[str, set[str]] = {
    "pqext.core.base.text": set(),
    "pqext.core.base.errors": {"pqext.core.base.text"},
    "pqext.core.base.limits": set(),
    KERNELS: FOUNDATION,
    "pqext.core": set(),
    **{
        f"pqext.core.{name}": {*FOUNDATION, KERNELS, *(f"pqext.core.{below}" for below in CORE_LAYERS[:position])}
        for position, name in enumerate(CORE_LAYERS)
    },
    "pqext.variant": CORE,
    "pqext.geo": CORE | {"pqext.report"},
    "pqext.dataset": BELOW | set(ROOMS),
    **{name: BELOW | used for name, used in ROOMS.items()},
    "pqext.table_metrics": BELOW,
    "pqext.spark": DATASET | SPARK,
    **{
        f"pqext.spark.{name}": BELOW_SPARK | {f"pqext.spark.{below}" for below in SPARK_LAYERS[:position]}
        for position, name in enumerate(SPARK_LAYERS)
    },
    "pqext.skipping": DATASET | SKIPPING | {"pqext.table_metrics"},
    "pqext.tables": DATASET | {"pqext.table_metrics"} | TABLES,
    "pqext.tables.delta": DATASET | {"pqext.table_metrics", "pqext.tables"},
    "pqext.tables.iceberg": DATASET | {"pqext.table_metrics", "pqext.tables"},
    **{
        f"pqext.skipping.{name}": DATASET | {f"pqext.skipping.{below}" for below in SKIPPING_LAYERS[:position]}
        for position, name in enumerate(SKIPPING_LAYERS)
    },
    "pqext.examples": set(),
    "pqext.report": {"pqext.core.base.text"},
    "pqext.inspection": CORE | {"pqext.report"},
    "pqext.verification": BELOW,
    "pqext.recovery": BELOW | RECOVERY | {"pqext.verification"},
    **{
        f"pqext.recovery.{name}": BELOW
        | {"pqext.verification", *(f"pqext.recovery.{below}" for below in RECOVERY_LAYERS[:position])}
        for position, name in enumerate(RECOVERY_LAYERS)
    },
    "pqext.demo": DATASET | TOOLS | SPARK,
    "pqext.cli": DATASET | TOOLS | SKIPPING | {"pqext.table_metrics", "pqext.tables", "pqext.demo"} | SPARK,
    "pqext.__main__": {"pqext.cli"},
    # The package itself names everything, and imports it only when a name is asked for.
    "pqext": DATASET
    | {"pqext.inspection", "pqext.recovery", "pqext.skipping", "pqext.spark", "pqext.table_metrics", "pqext.tables"}
    | {"pqext.verification"},
}


def layer(module: str) -> str:
    """The layer that ``module`` belongs to."""
    return max((name for name in ALLOWED if module == name or module.startswith(name + ".")), key=len)


def modules() -> dict[str, Path]:
    """Every module of the package, Python and Cython, by dotted name."""
    found = {}
    for path in sorted(p for pattern in ("*.py", "*.pyx", "*.pxd", "*.pxi", "*.pyi") for p in PACKAGE.rglob(pattern)):
        relative = path.relative_to(ROOT)
        if "build" in relative.parts:
            continue
        parts = relative.with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts) + path.suffix] = path
    return found


MODULES = modules()
NAMES = {name.rsplit(".", 1)[0] for name in MODULES}


def resolve(base: str, names: list[str]) -> set[str]:
    """What ``from base import names`` brings in: submodules where they are, else ``base``."""
    return {f"{base}.{name}" if f"{base}.{name}" in NAMES else base for name in names}


def python_imports(path: Path, module: str) -> set[str]:
    """The pqext modules that a Python file imports anywhere in it, for type checking too."""
    found: set[str] = set()
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= resolve(base, [alias.name for alias in node.names])
    return {name for name in found if name.split(".")[0] == "pqext"}


def cython_imports(path: Path) -> set[str]:
    """The pqext modules that a Cython file imports or cimports."""
    text = re.sub(r"#.*", "", path.read_text("utf-8"))
    found: set[str] = set()
    for base, names in re.findall(r"^\s*from\s+(pqext[\w.]*)\s+c?import\s+(\([^)]*\)|[^\n]+)", text, re.M):
        found |= resolve(base, [name.split()[0] for name in names.strip("() \n").split(",") if name.strip()])
    for names in re.findall(r"^\s*c?import\s+(pqext[^\n]+)", text, re.M):
        found |= {name.split()[0] for name in names.split(",")}
    return found


@cache
def imports(name: str) -> set[str]:
    """The pqext modules that ``name`` (with its suffix, as in ``MODULES``) imports."""
    path = MODULES[name]
    if path.suffix in {".pyx", ".pxd", ".pxi"}:
        return cython_imports(path)
    return python_imports(path, name.rsplit(".", 1)[0])


def test_modules_import_only_lower_layers() -> None:
    upward = set()
    for name in MODULES:
        own = layer(name.rsplit(".", 1)[0])
        upward |= {(name, used) for used in imports(name) if layer(used) != own and layer(used) not in ALLOWED[own]}
    assert len(MODULES) > 300
    assert upward == set()


@pytest.mark.parametrize(
    ("package", "layers", "modules"),
    [
        ("core", (*CORE_LAYERS, "kernels"), set()),
        ("spark", SPARK_LAYERS, set()),
        ("recovery", RECOVERY_LAYERS, {"evidence", "output", "run"}),
        ("skipping", SKIPPING_LAYERS, {"data_skipping", "description"}),
    ],
)
def test_every_folder_has_a_layer(package: str, layers: tuple[str, ...], modules: set[str]) -> None:
    assert {path.parent.name for path in PACKAGE.glob(f"{package}/*/__init__.py")} == set(layers)
    assert {path.stem for path in PACKAGE.glob(f"{package}/*.py")} == {"__init__", *modules}


def test_every_folder_of_dataset_has_a_layer() -> None:
    assert set(ROOMS) == {f"pqext.dataset.{path.parent.name}" for path in PACKAGE.glob("dataset/*/__init__.py")}


def test_core_names_upper_layers_only_in_the_registry() -> None:
    above = re.compile(r"[\"']pqext\.(?!core\b)\w+[.:\w]*[\"']")
    named = {
        str(path.relative_to(ROOT)): above.findall(path.read_text("utf-8"))
        for name, path in MODULES.items()
        if layer(name.rsplit(".", 1)[0]) in CORE
    }
    assert [path for path, found in named.items() if found] == ["pqext/core/schema/annotations.py"]


def test_dynamic_imports_are_in_known_modules() -> None:
    """Layers are read from import statements; packages above register what those below call by name."""
    files = [path for path in MODULES.values() if path.suffix == ".py" and "import_module" in path.read_text("utf-8")]
    found = {path.relative_to(PACKAGE).as_posix() for path in files}
    assert found == {"core/base/lazy_imports.py", "cli/command.py", "dataset/presentation/frames.py"}


def test_cython_imports_are_detected() -> None:
    path = MODULES["pqext.core.kernels.buffer.pyx"]
    assert path.suffix == ".pyx"
    assert "pqext.core.kernels.buffer" in NAMES
    assert layer("pqext.core.kernels.buffer") == "pqext.core.kernels"
    assert layer("pqext.core.base.errors") == "pqext.core.base.errors"
    assert layer("pqext.variant.kernels.json") == "pqext.variant"


def graph() -> dict[str, set[str]]:
    """The files that each file imports. What is declared in a ``.pxd`` counts apart from what is written behind it."""
    by_module: dict[str, dict[str, str]] = {}
    for name in MODULES:
        module, _, suffix = name.rpartition(".")
        by_module.setdefault(module, {})[suffix] = name
    found: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        if path.suffix == ".pyi" and len(by_module[name.rsplit(".", 1)[0]]) > 1:
            continue  # a stub names what its module holds
        cython = path.suffix in {".pyx", ".pxd", ".pxi"}
        suffixes = ("pxd", "pyx", "py") if cython else ("py", "pyx", "pyi")
        targets = [by_module[used] for used in imports(name) if used in by_module]
        found[name] = {next(files[one] for one in suffixes if one in files) for files in targets}
    return found


def circles(imported: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of nodes that reach each other and themselves."""
    reach: dict[str, set[str]] = {name: set(below) for name, below in imported.items()}
    while True:
        wider = {name: below.union(*(reach.get(one, set()) for one in below)) for name, below in reach.items()}
        if wider == reach:
            break
        reach = wider
    groups = {tuple(sorted(one for one in below if name in reach.get(one, ()))) for name, below in reach.items()}
    return sorted(list(group) for group in groups if group)


def test_import_cycle_is_detected() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_imports_have_no_cycles() -> None:
    """Neither at run time, nor for type checking, nor within functions."""
    assert circles(graph()) == []


PLAIN_FILE = "pqext.write_table(pa.table({'i': [1]}), 'plain.parquet'); pqext.read_table('plain.parquet')"


@pytest.mark.parametrize(
    ("code", "unused"),
    [
        ("import pqext", {"numpy", "pyarrow", "pyproj", "pyspark", "shapely", "cryptography", "rich", "click"}),
        (f"import pqext, pyarrow as pa; {PLAIN_FILE}", {"pyproj", "pyspark", "shapely", "cryptography", "rich"}),
    ],
)
def test_libraries_are_imported_lazily(code: str, unused: set[str], tmp_path: Path) -> None:
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert unused & set(loaded.stdout.split()) == set()
