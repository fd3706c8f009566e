"""Type checkers and editors know every option: a misspelt one is an error before the script runs."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import pqext
from pqext.core.options.keywords import ReadKeywords, ScanKeywords, WriteKeywords
from pqext.core.options.read_write import ReadOptions, WriteOptions
from pqext.dataset import scan_creation

ROOT = Path(__file__).resolve().parent.parent

RIGHT = """
import pyarrow as pa

import pqext
from pqext import geo, variant

table = pa.table({"a": [1]})
pqext.write_table(table, "a.parquet", compression="zstd", bloom_filters={"a": {"fpp": 0.01}}, page_rows=100)
pqext.write_table(table, "a.parquet", options=pqext.WriteOptions(compression="gzip"), checksums=False)
with pqext.ParquetWriter("a.parquet", table.schema, sorting=["a desc"]) as writer:
    writer.write_table(table)
pqext.read_table("a.parquet", ["a"], filter=pqext.col("a") > 0, on_corrupt="skip", partitioning=None)
pqext.read_table("a.parquet", filter=[("a", ">", 0)], options=pqext.ReadOptions(threads=1))
pqext.scan(["a.parquet"], filter=[[("a", "==", 1)], [("a", "in", [2])]], limits=pqext.Limits()).to_batches()
pqext.open("a.parquet", int96="us").read()
variant.reshred_file("a.parquet", "b.parquet", "infer", compression="zstd")
geo.read_geopandas("a.parquet", on_corrupt="skip")
"""
WRONG = [
    'pqext.write_table(None, "a", compresion="zstd")',
    'pqext.write_table(None, "a", compression="zst")',
    'pqext.write_table(None, "a", page_rows="many")',
    'pqext.write_table(None, "a", options=pqext.ReadOptions())',
    'pqext.read_table("a", on_corupt="skip")',
    'pqext.read_table("a", filters=[("a", ">", 1)])',
    'pqext.scan("a", batch_size=5)',
    'pqext.open("a", int96="minutes")',
    'pqext.open("a", shreded=True)',
    'pqext.ParquetWriter("a", None, row_group_size=5)',
    'variant.reshred_file("a", "b", "infer", compresion="zstd")',
    'geo.write_geopandas(None, "a", compresion="zstd")',
    'geo.read_geopandas("a", on_corupt="skip")',
    'pqext.raed_table("a")',
    'geo.from_pionts([1], [2])',
    'variant.parse_jsn(["1"])',
    'spark.raed(None, "a")',
    'pqext.open("a").num_row_groups',
    'pqext.scan("a").collect()',
]


@pytest.mark.parametrize(("keywords", "options"), [(ReadKeywords, ReadOptions), (WriteKeywords, WriteOptions)])
def test_keywords_match_the_option_fields(keywords: Any, options: Any) -> None:
    fields = {name: hint for name, hint in get_type_hints(options).items() if name in options.__dataclass_fields__}
    assert get_type_hints(keywords) == fields
    assert keywords.__total__ is False


def test_keywords_of_scan_match_its_arguments() -> None:
    hints = get_type_hints(pqext.scan, localns=vars(scan_creation) | {"DataFrame": Any})
    own = [one.name for one in inspect.signature(pqext.scan).parameters.values() if one.kind is one.KEYWORD_ONLY]
    assert get_type_hints(ScanKeywords) == get_type_hints(ReadKeywords) | {name: hints[name] for name in own}


@pytest.mark.slow
def test_type_checker_accepts_every_option(tmp_path: Path) -> None:
    head = "import pqext\nfrom pqext import geo, spark, variant\n"
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(head + "\n".join(WRONG) + "\n")
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nstrict = true\nmypy_path = {ROOT}\ncache_dir = {ROOT / '.mypy_cache'}\n"
        "[mypy-geopandas.*,lazy_loader.*,pandas.*,pyarrow.*,pytz.*,shapely.*,thrift.*]\nignore_missing_imports = true\n"
        "[mypy-pqext.*]\nfollow_imports = silent\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "right.py", "wrong.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = found.stdout.splitlines()
    lines = {line.split(":")[1] for line in told if line.startswith("wrong.py:") and ": error:" in line}
    assert [line for line in told if line.startswith("right.py")] == []
    assert lines == {str(number + 3) for number in range(len(WRONG))}, found.stdout
