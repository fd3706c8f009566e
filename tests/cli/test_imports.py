"""Commands import no more than they need, because importing is most of the time that a short one takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import pqext

HEAVY = {"pandas", "pyspark", "shapely", "pyproj", "sqlglot", "cryptography", "duckdb", "polars", "http", "webbrowser"}
LIBRARIES = {"numpy", "pyarrow", "zstandard", "cramjam", "isal"}
SCRIPT = """
import atexit, sys
atexit.register(lambda: print("\\n", *sys.modules, file=sys.stderr))
from pqext.cli import main
main()
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("imports") / "a.parquet"
    pqext.write_table(pa.table({"a": [1, 2]}), path)
    return path


def imported(*arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["query", "--help"], ["convert", "--help"]])
def test_help_imports_neither_arrow_nor_the_format(arguments: list[str]) -> None:
    modules = imported(*arguments)
    assert not modules & (HEAVY | LIBRARIES)
    assert not [name for name in modules if name.startswith(("pqext.core.kernels", "pqext.variant", "pqext.geo"))]


def test_counting_a_file_imports_neither_numpy_nor_arrow(file: Path) -> None:
    modules = imported("count", str(file))
    assert not modules & (HEAVY | LIBRARIES)
    assert "pyarrow" in imported("count", str(file), "--where", "a = 1")


def test_attributes_that_start_a_scan_do_not_import_it() -> None:
    script = "import sys, pqext; pqext.read_table, pqext.scan, pqext.geo.read_geopandas; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & (HEAVY | LIBRARIES)


@pytest.mark.parametrize("command", ["schema", "count", "head", "inspect"])
def test_inspecting_a_plain_file_imports_no_shapely_sqlglot_or_cryptography(file: Path, command: str) -> None:
    modules = imported(command, str(file))
    assert not modules & HEAVY
    assert not [name for name in modules if name.startswith(("pqext.spark", "pqext.report", "pqext.variant.json"))]


def test_reading_imports_neither_writer_nor_rare_footers_nor_measures_on_the_globe(file: Path) -> None:
    script = f"import sys, pqext; pqext.read_table({str(file)!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "pqext.core.read.reader" in modules
    assert not modules & {"pqext.core.write.writer", "pqext.core.footer.writing", "pqext.geo.predicates.globe"}
    rare = ("checkpoints", "flatbuffers.reading", "jump_table.footer")
    assert not modules & {f"pqext.core.footer.{name}" for name in rare}
