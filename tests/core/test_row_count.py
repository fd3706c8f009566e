"""Rows counted in the footer alone, as ``pqext count`` counts those of one local file."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import conformance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import pqext
from pqext.cli import app
from pqext.core.footer.row_count import count_rows
from pqext.core.format import metadata
from pqext.core.format.thrift import decode, encode
from pqext.core.options.encryption import FileEncryption

LIMITS = pqext.Limits.untrusted()
ROOT = Path(os.environ.get("PARQUET_TEST_DATA", ""))
FILES = conformance.files_of(ROOT) if os.environ.get("PARQUET_TEST_DATA") else []


def written(**options: Any) -> bytes:
    sink = io.BytesIO()
    pqext.write_table(pa.table({"a": range(25)}), sink, row_group_rows=10, **options)
    return sink.getvalue()


def with_footer(change: Callable[[metadata.FileMetaData], None]) -> bytes:
    data = written()
    size = int.from_bytes(data[-8:-4], "little")
    footer = decode(metadata.FileMetaData, data[-8 - size : -8])[0]
    change(footer)
    raw = encode(footer)
    return data[: -8 - size] + raw + len(raw).to_bytes(4, "little") + b"PAR1"


def with_counts(file: int, *groups: int) -> bytes:
    def change(footer: metadata.FileMetaData) -> None:
        footer.num_rows = file
        for group, rows in zip(footer.row_groups, groups, strict=True):
            group.num_rows = rows

    return with_footer(change)


def with_children(count: int) -> bytes:
    def change(footer: metadata.FileMetaData) -> None:
        footer.schema[0].num_children = count

    return with_footer(change)


@pytest.mark.skipif(not FILES, reason="PARQUET_TEST_DATA does not name a copy of apache/parquet-testing")
def test_counts_equal_those_of_arrow() -> None:
    compared = 0
    for path in map(ROOT.joinpath, FILES):
        rows = count_rows(str(path), LIMITS)
        if rows is not None:
            assert rows == pq.read_metadata(path).num_rows, path
            compared += 1
    assert compared > len(FILES) / 2


def test_rows_are_counted_without_a_scan(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for data, rows in (
        (written(), 25), (with_counts(30, 10, 10, 10), 30), (with_counts(5, 0, 0, 5), 5),
        (written(footer="thrift+flatbuffers"), 25),
    ):
        path.write_bytes(data)
        assert count_rows(str(path), LIMITS) == rows
    pqext.write_table(pa.table({"a": pa.array([], pa.int32())}), path)
    assert count_rows(str(path), LIMITS) == 0


def test_other_footers_are_left_to_the_scan(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    key = bytes(16)
    for data in (
        b"", b"PAR1", b"PAR1PAR1", b"x" * 40, written()[:-1], b"PAR1" + b"\x01" * 20 + b"\xff\xff\xff\x7fPAR1",
        with_counts(25, 10, 10, 6), with_counts(9, 10, -11, 10), with_counts(-25, -10, -10, -5),
        written(footer="flatbuffers"), written(encryption=FileEncryption(footer_key=key)),
        written(encryption=FileEncryption(footer_key=key, plaintext_footer=True)),
    ):
        path.write_bytes(data)
        assert count_rows(str(path), LIMITS) is None
    without_schema = with_footer(lambda footer: setattr(footer, "schema", []))
    for data in (b"PAR2" + written()[4:], written()[30:], with_children(2), without_schema):
        path.write_bytes(data)
        with pytest.raises(pqext.CorruptFileError):
            pqext.scan(path).count()
        assert count_rows(str(path), LIMITS) is None
    path.write_bytes(written())
    assert count_rows(str(path), pqext.Limits.untrusted(footer_bytes=20)) is None


@pytest.mark.skipif(not os.path.isfile("/proc/self/maps"), reason="needs files whose size is not known")
def test_count_of_a_file_without_a_size_is_a_parquet_error() -> None:
    assert count_rows("/proc/self/maps", LIMITS) is None
    with pytest.raises(pqext.CorruptFileError, match="it has 0 bytes"):
        CliRunner().invoke(app, ["count", "/proc/self/maps"], catch_exceptions=False, standalone_mode=False)


def test_options_and_other_sources_need_a_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(written())
    (tmp_path / "b.parquet").write_bytes(written())
    counted: list[str] = []

    def record(name: str, limits: pqext.Limits) -> int:
        counted.append(name)
        return 7

    monkeypatch.setattr("pqext.core.footer.row_count.count_rows", record)
    run: Callable[..., Any] = CliRunner().invoke
    assert json.loads(run(app, ["count", "--json", str(path)]).stdout) == {"rows": 7}
    assert counted == [str(path)]
    for arguments, rows in (
        ([str(path), "--where", "a < 4"], 4), ([str(path), str(path)], 50), ([str(tmp_path)], 50),
        ([str(tmp_path / "*.parquet")], 50), ([str(path), "--strict"], 25), ([str(path), "--union"], 25),
    ):
        done = run(app, ["count", *arguments])
        assert (done.exit_code, done.stdout) == (0, f"{rows}\n"), done.output
    assert counted == [str(path)]
