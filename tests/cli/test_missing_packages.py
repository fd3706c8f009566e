"""Commands without an optional package: the error names the extra to install."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

import pqext
from pqext import geo

# No finder finds the packages, as if they were not installed.
MAIN = """
import sys

PACKAGES = sys.argv.pop(1).split(",")

class Finder:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in PACKAGES else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Finder, sys.meta_path)
from pqext.cli import main

main()
"""
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
DISTRIBUTIONS = {"PIL": "pillow"}


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("pyspark", ["demo", "-o", "demo"]), ("deltalake", ["query", "delta:t"]),
        ("deltalake", ["tables", "append", "delta:t", "p.parquet"]), ("pyiceberg", ["query", "iceberg:a.b.c"]),
        ("pyiceberg", ["count", "iceberg:t"]), ("pyiceberg", ["tables", "describe", "iceberg:a.b.c"]),
        ("pyiceberg", ["tables", "append", "iceberg:a.b.c", "p.parquet"]), ("PIL", ["map", "p.parquet", "-o", "m.png"]),
        ("pyogrio", ["convert", "x.shp", "p2.parquet"]), ("fsspec", ["query", "memory://p.parquet"]),
        ("obstore,aiohttp", ["query", "https://localhost:1/p.parquet"]),
    ],
)  # fmt: skip
def test_command_names_the_missing_package(tmp_path: Path, package: str, arguments: list[str]) -> None:
    for name in package.split(","):
        pytest.importorskip(name)
    pqext.write_table(pa.table({"at": geo.from_points([1.0], [2.0])}), tmp_path / "p.parquet")
    (tmp_path / "x.shp").touch()
    command = [sys.executable, "-c", MAIN, package, *arguments]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    (error,) = [line for line in result.stderr.splitlines() if line.startswith("pqext: ")]
    advised = re.search(r"pip install 'pqext\[(\w+)\]'", error)
    assert advised is not None, error
    requirements = PROJECT["optional-dependencies"][advised[1]]
    names = {re.split(r"[\[>=<]", requirement)[0] for requirement in requirements}
    first = package.split(",")[0]
    assert DISTRIBUTIONS.get(first, first) in names
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.parquet", "x.shp"]
