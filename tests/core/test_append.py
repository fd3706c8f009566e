"""Row groups appended to files of ours and of others."""

import base64
import contextlib
import copy
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import fsspec
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.base.buffers import view
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import FileMetaData, Statistics
from pqext.core.format.thrift import decode, encode
from pqext.core.io.sink import Sink
from pqext.core.options.layout import FooterFormat
from pqext.core.write import append

FIRST = pa.table({"a": [1, 2, None], "s": ["x", None, "z"], "l": [[1], [], None]})
SECOND = pa.table({"a": [7, 8], "s": ["q", "r"], "l": [None, [2, 3]]})
BOTH = pa.concat_tables([FIRST, SECOND])


def _append(path: Path, table: pa.Table, **options: object) -> None:
    with pqext.ParquetWriter(path, table.schema, append=True, **options) as writer:
        writer.write_table(table)


@pytest.fixture(params=["pqext", "pyarrow", "duckdb"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "t.parquet"
    if request.param == "pqext":
        pqext.write_table(FIRST, path, bloom_filters=True)
    elif request.param == "pyarrow":
        pq.write_table(FIRST, path, write_page_index=True)
    else:
        first = FIRST
        duckdb.sql(f"copy (select * from first) to '{path}' (format parquet)")
        assert first.num_rows
    return path


@pytest.mark.spec("recovery.append")
def test_all_readers_return_old_and_new_rows(path: Path) -> None:
    before = path.read_bytes()
    _append(path, SECOND)
    _append(path, SECOND, bloom_filters=True)
    expected = pa.concat_tables([BOTH, SECOND]).to_pylist()
    assert path.read_bytes().startswith(before)
    assert pq.read_table(path).to_pylist() == expected
    assert duckdb.sql(f"from '{path}'").to_arrow_table().to_pylist() == expected
    assert polars.read_parquet(path).to_arrow().to_pylist() == expected
    assert pqext.read_table(path).to_pylist() == expected
    assert pqext.verify(path).ok
    metadata = pq.ParquetFile(path).metadata
    assert [metadata.row_group(i).num_rows for i in range(3)] == [3, 2, 2]
    assert metadata.row_group(1).column(0).statistics.max == 8
    assert pqext.read_table(path, filter=pqext.col("a") == 7).num_rows == 2
    assert pqext.read_table(path, filter=pqext.col("s") == "z").num_rows == 1


@pytest.mark.spec("recovery.append.fits")
def test_schema_mismatch_is_rejected_before_writing(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"do not match .*: column 'a' has type string instead of int64$"):
        pqext.ParquetWriter(path, pa.table({"a": ["text"], "s": ["q"], "l": [[1]]}).schema, append=True)
    assert path.read_bytes() == before


@pytest.mark.spec("recovery.append.undone")
def test_aborted_append_leaves_the_file_unchanged(path: Path) -> None:
    before = path.read_bytes()
    with contextlib.suppress(RuntimeError), pqext.ParquetWriter(path, SECOND.schema, append=True) as writer:
        writer.write_table(SECOND)
        writer.end_row_group()
        assert path.stat().st_size >= len(before)
        raise RuntimeError
    assert path.read_bytes() == before
    writer = pqext.ParquetWriter(path, SECOND.schema, append=True)
    writer.write_table(SECOND)
    writer.end_row_group()
    writer._sink.flush()
    assert path.stat().st_size == writer.bytes_written
    assert writer.bytes_written > len(before)
    del writer
    assert path.read_bytes() == before
    _append(path, SECOND.slice(0, 0))
    assert path.read_bytes() == before


def test_appending_to_a_missing_file_creates_it(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    for table in (FIRST, SECOND):
        pqext.write_table(table, path, append=True, durable=True)
    assert pq.read_table(path).to_pylist() == BOTH.to_pylist()


@pytest.mark.spec("recovery.append.alone")
def test_concurrent_appends_are_rejected(path: Path) -> None:
    with pqext.ParquetWriter(path, SECOND.schema, append=True) as writer:
        with pytest.raises(BlockingIOError, match="another writer"):
            _append(path, SECOND)
        writer.write_table(SECOND)
    assert pq.read_table(path).to_pylist() == BOTH.to_pylist()


@pytest.mark.parametrize(
    ("option", "error"), [({"checkpoint": 1}, "checkpoint"), ({"extensions": {"file": b"x"}}, "extensions")]
)
def test_options_that_describe_old_row_groups_are_rejected(path: Path, option: dict[str, object], error: str) -> None:
    before = path.read_bytes()
    with pytest.raises(ValueError, match=error):
        _append(path, SECOND, **option)
    assert path.read_bytes() == before


def test_only_local_paths_support_append(path: Path) -> None:
    with path.open("r+b") as file, pytest.raises(TypeError, match="path"):
        pqext.write_table(SECOND, file, append=True)
    for url in ("memory://t.parquet", "s3://no-such-bucket/t.parquet", "https://host.invalid/t.parquet", "nonsense://t"):
        with pytest.raises(ValueError, match="append needs a local file, since stores replace complete files: write"):
            pqext.write_table(SECOND, url, append=True)
    with pytest.raises(ValueError, match="append needs a local file"):
        pqext.write_table(SECOND, "t.parquet", append=True, filesystem=fsspec.filesystem("memory"))
    rubbish = path.with_name("rubbish")
    rubbish.write_bytes(b"no Parquet file at all")
    with pytest.raises(pqext.CorruptFileError):
        _append(rubbish, SECOND)
    assert rubbish.read_bytes() == b"no Parquet file at all"


def test_append_rebuilds_the_jump_table(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pqext.write_table(FIRST, path, footer="thrift+index")
    _append(path, SECOND)
    assert pqext.verify(path).ok
    assert pq.read_table(path).to_pylist() == BOTH.to_pylist()
    once = tmp_path / "once.parquet"
    pqext.write_table(BOTH, once, footer="thrift+index")
    assert path.read_bytes()[-25:-9] == once.read_bytes()[-25:-9]


@pytest.mark.spec("recovery.append.fits")
def test_different_arrow_types_with_the_same_schema_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pqext.write_table(pa.table({"d": pa.array([1], pa.duration("s"))}), path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"'d' is duration\[ms\] instead of duration\[s\]; cast the column"):
        pqext.ParquetWriter(path, pa.schema([("d", pa.duration("ms"))]), append=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_arrow_types_of_other_columns_are_not_compared(names: str) -> None:
    one, other = (
        base64.b64encode(pa.schema([(name, pa.duration(unit))]).serialize().to_pybytes()).decode()
        for name, unit in zip(names, ("s", "ms"), strict=True)
    )
    assert append._describe_type_difference(one, other) is None
    assert append._describe_type_difference(one, one) is None


def test_append_preserves_the_arrow_types_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    polars.DataFrame({"s": ["a"], "l": [["b"]]}).write_parquet(path)
    before = pqext.read_table(path).schema
    _append(path, pa.table({"s": ["c"], "l": [["d"]]}))
    assert pqext.read_table(path).schema.types == before.types
    assert polars.read_parquet(path).rows() == [("a", ["b"]), ("c", ["d"])]


def test_key_value_metadata_argument_replaces_old_entries(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pqext.write_table(FIRST, path, key_value_metadata={"k": "old", "kept": "1"})
    _append(path, SECOND, key_value_metadata={"k": "new"})
    found = pq.ParquetFile(path).metadata.metadata
    assert (found[b"k"], found[b"kept"]) == (b"new", b"1")


def test_geoparquet_boxes_cover_all_rows(tmp_path: Path) -> None:
    import json

    import shapely

    path = tmp_path / "t.parquet"
    for x in (1.0, 50.0):
        table = pa.table({"g": pa.array(shapely.to_wkb([shapely.Point(x, 2.0)]))})
        pqext.write_table(table, path, append=True, geometry={"g": "OGC:CRS84"}, geoparquet=True)
    noted = json.loads(pq.ParquetFile(path).metadata.metadata[b"geo"])
    assert noted["columns"]["g"]["bbox"] == [1.0, 2.0, 50.0, 2.0]
    assert pqext.read_table(path, filter=pqext.col("g").intersects((40, 0, 60, 9))).num_rows == 1


_DYING = """
    import os, signal, sys
    import pyarrow as pa
    import pqext
    table = pa.table({"a": [7, 8], "s": ["q", "r"], "l": [None, [2, 3]]})
    writer = pqext.ParquetWriter(sys.argv[1], table.schema, append=True)
    for _ in range(int(sys.argv[2])):
        writer.write_table(table)
        writer.end_row_group()
    writer._sink.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system kills no process")
@pytest.mark.parametrize("groups", [0, 9])
@pytest.mark.spec("recovery.append")
def test_dying_writer_loses_no_old_row(tmp_path: Path, groups: int) -> None:
    path = tmp_path / "t.parquet"
    pqext.write_table(FIRST, path)
    before = path.read_bytes()
    died = subprocess.run([sys.executable, "-c", textwrap.dedent(_DYING), path, str(groups)], check=False)
    assert died.returncode == -signal.SIGKILL
    assert path.read_bytes().startswith(before)
    assert (os.path.getsize(path) > len(before)) == (groups > 0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert pqext.read_table(path, recover=True).to_pylist() == FIRST.to_pylist()
    assert len(told) == (groups > 0)
    out = path.with_name("out.parquet")
    pqext.recover(path, out)
    found = pq.read_table(out).to_pylist()
    assert found[:3] == FIRST.to_pylist()
    assert all(row in SECOND.to_pylist() for row in found[3:])


@pytest.mark.parametrize("append", [True, False])
def test_append_removes_stale_hadoop_checksums(tmp_path: Path, append: bool) -> None:
    path, noted = tmp_path / "t.parquet", tmp_path / ".t.parquet.crc"
    pqext.write_table(FIRST, path)
    noted.write_bytes(b"crc")
    with contextlib.suppress(ValueError):
        _append(path, pa.table({"other": [1]}))
    assert noted.exists()
    pqext.write_table(SECOND, path, append=append)
    assert not noted.exists()


@pytest.mark.spec("recovery.append")
@pytest.mark.filterwarnings("ignore::pqext.core.footer.checkpoints.RecoveredFileWarning")
@pytest.mark.parametrize("appended", [0, 1])
def test_append_interrupted_anywhere_leaves_all_old_rows(path: Path, appended: int) -> None:
    for _ in range(appended):
        _append(path, SECOND)
    rows, size = pqext.read_table(path).to_pylist(), path.stat().st_size
    _append(path, SECOND)
    whole, found = path.read_bytes(), set()
    for stop in [*range(size + 1, size + 40, 3), *range(size + 40, len(whole), 17)]:
        path.write_bytes(whole[:stop])
        found.add(pqext.open(path, recover=True).num_rows)
    assert found == {len(rows)}
    path.write_bytes(whole[: size + 9])
    assert pqext.read_table(path, recover=True).to_pylist() == rows
    with pytest.raises(pqext.CorruptFileError, match="pqext recover"):
        _append(path, SECOND)


@pytest.mark.spec("recovery.append")
@pytest.mark.filterwarnings("ignore::pqext.core.footer.checkpoints.RecoveredFileWarning")
@pytest.mark.parametrize("checkpoint", [None, 1])
@pytest.mark.parametrize("form", ["thrift+index", "thrift+flatbuffers", "flatbuffers"])
def test_append_to_any_footer_format_is_crash_safe(tmp_path: Path, form: FooterFormat, checkpoint: int | None) -> None:
    path = tmp_path / "t.parquet"
    pqext.write_table(FIRST, path, footer=form, checkpoint=checkpoint, row_group_rows=1)
    size = path.stat().st_size
    with pqext.open(path) as file:
        offset = file.footer.offset
    _append(path, SECOND)
    whole = path.read_bytes()
    for stop in [*range(size + 1, size + 40, 3), *range(size + 40, len(whole), 97)]:
        path.write_bytes(whole[:stop])
        with pqext.open(path, recover=True) as file:
            assert file.read()["a"].to_pylist() == FIRST["a"].to_pylist()
            assert file.footer.offset == offset or stop >= size + 40  # a complete checkpoint is a later copy


@pytest.mark.spec("recovery.append")
def test_row_group_ordinals_are_set_for_all_or_none(path: Path) -> None:
    before = [group.metadata.ordinal for group in pqext.open(path).row_groups]
    _append(path, SECOND)
    _append(path, SECOND)
    after = [group.metadata.ordinal for group in pqext.open(path).row_groups]
    assert after == ([None] * 3 if None in before else [0, 1, 2])
    # Readers that stand on arrow-rs refuse a file of which some are numbered.
    rows = datafusion.SessionContext().read_parquet(str(path)).to_arrow_table().num_rows
    assert rows == FIRST.num_rows + 2 * SECOND.num_rows


@pytest.mark.parametrize(
    ("groups", "numbers"),
    [
        pytest.param((1 << 15) - 1, range(1 << 15), marks=pytest.mark.slow),
        (1 << 15, [None] * ((1 << 15) + 1)),
    ],
)
def test_row_group_ordinals_are_omitted_beyond_16_bits(groups: int, numbers: list[int | None], tmp_path: Path) -> None:
    path, row = tmp_path / "t.parquet", pa.table({"a": [1]})
    pqext.write_table(row, path)

    def repeat(metadata: FileMetaData) -> None:
        (group,) = metadata.row_groups
        metadata.row_groups = [copy.copy(group) for _ in range(groups)]
        for number, group in enumerate(metadata.row_groups):
            group.ordinal = number
        metadata.num_rows = groups

    rewrite_footer(path, repeat, tmp_path / "many.parquet")
    _append(tmp_path / "many.parquet", row)
    metadata = pq.read_metadata(tmp_path / "many.parquet")
    assert metadata.num_row_groups == metadata.num_rows == groups + 1
    with pqext.open(tmp_path / "many.parquet") as file:
        assert [group.ordinal for group in file.metadata.row_groups] == [*numbers]


@pytest.mark.spec("recovery.append")
def test_bounds_known_to_be_wrong_are_not_inherited(tmp_path: Path) -> None:
    path = tmp_path / "old.parquet"
    pqext.write_table(pa.table({"s": ["abc", "zzz"], "n": [1, 2]}), path)

    def by_old_parquet_mr(metadata: FileMetaData) -> None:
        metadata.created_by, metadata.column_orders = "parquet-mr version 1.6.0", None
        for chunk in metadata.row_groups[0].columns:
            chunk.column_index_offset = chunk.column_index_length = None
            assert chunk.meta_data is not None
            least = chunk.meta_data.statistics.min_value if chunk.meta_data.statistics else None
            chunk.meta_data.statistics = Statistics(min=b"zzz", max=b"zzz") if least == b"abc" else (
                Statistics(min=least, max=least)
            )

    pqext.rewrite_footer(path, by_old_parquet_mr)
    pqext.write_table(pa.table({"s": ["q"], "n": [3]}), path, append=True)
    kept = [chunk.structure.meta_data.statistics for chunk in pqext.open(path).row_groups[0].chunks()]
    assert [one.min for one in kept] == [None, (1).to_bytes(8, "little")]
    joined = tmp_path / "joined.parquet"
    pqext.rewrite_footer(path, by_old_parquet_mr)
    pqext.concatenate([path, path], joined)
    found = pqext.open(joined).row_groups[0].chunk("s").structure.meta_data
    assert found is not None
    assert found.statistics.min is None


def test_append_is_rejected_if_pages_depend_on_the_writer_name(tmp_path: Path) -> None:
    path = tmp_path / "old.parquet"
    pqext.write_table(pa.table({"s": ["abc", "abd"]}), path, encodings={"s": "delta_byte_array"}, dictionary=False)
    pqext.rewrite_footer(path, lambda metadata: setattr(metadata, "created_by", "parquet-mr version 1.7.0"))
    before = path.read_bytes()
    with pytest.raises(pqext.UnsupportedError, match="rewrite these files with"):
        pqext.write_table(pa.table({"s": ["q"]}), path, append=True)
    assert path.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_child_does_not_block_other_appends(path: Path) -> None:
    with pqext.ParquetWriter(path, SECOND.schema, append=True) as writer:
        writer.write_table(SECOND)
        reader, end = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(reader, 1)
            os._exit(0)
    try:
        _append(path, SECOND)
    finally:
        os.write(end, b"x")
        os.waitpid(child, 0)
    assert pq.read_table(path).num_rows == FIRST.num_rows + 2 * SECOND.num_rows


def test_one_of_two_concurrent_creations_succeeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new.parquet"
    for links in (True, False):  # some file systems have none
        if not links:
            monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(95, "no links here")))
        first = pqext.ParquetWriter(path, SECOND.schema, append=True)
        _append(path, SECOND)
        first.write_table(SECOND)
        with pytest.raises(FileExistsError, match="another writer created this file"):
            first.close()
        assert pq.read_table(path).equals(SECOND)
        assert [entry.name for entry in tmp_path.iterdir()] == ["new.parquet"]
        path.unlink()


@pytest.mark.parametrize("moment", ["before a byte is written", "before the end"])
def test_file_changed_by_another_program_is_left_alone(path: Path, moment: str) -> None:
    before = path.read_bytes()
    for changed in (before[:100], before + bytes(10_000), None):
        path.write_bytes(before)
        writer = pqext.ParquetWriter(path, SECOND.schema, append=True)
        if moment == "before the end":
            writer.write_table(SECOND)
            writer.end_row_group()
            writer._sink.flush()
        changed = path.read_bytes()[::-1] if changed is None else changed  # of one size
        with path.open("r+b") as other:  # the same file, by another program
            other.truncate(len(changed))
            other.seek(0)
            other.write(changed)
        writer.write_table(SECOND)
        with pytest.raises(BlockingIOError, match="another program has written to this file or truncated it"):
            writer.close()
        assert path.read_bytes() == changed


@pytest.mark.parametrize("end", ["abort", "close", "forget"])
def test_append_without_rows_leaves_a_rewritten_file_alone(path: Path, end: str) -> None:
    for other in (pa.table({"z": [1]}), pa.table({"z": range(100_000)})):
        writer = pqext.ParquetWriter(path, SECOND.schema, append=True)
        pq.write_table(other, path)  # in place
        if end == "forget":
            del writer
        else:
            getattr(writer, end)()
        assert pq.read_table(path).equals(other)
        pqext.write_table(FIRST, path)


def test_link_cycle_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "loop.parquet"
    path.symlink_to(path)
    with pytest.raises(OSError, match=r"(?i)symbolic links|symlink"):
        _append(path, SECOND)


def test_append_to_an_unreadable_file_is_rejected(path: Path) -> None:
    pqext.rewrite_footer(path, lambda metadata: setattr(metadata.row_groups[0], "num_rows", 3))
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    metadata, _ = decode(FileMetaData, view(data)[footer:-8])
    metadata.row_groups[0].num_rows = -3
    raw = encode(metadata)
    path.write_bytes(data[:footer] + raw + len(raw).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(pqext.CorruptFileError, match="a row group declares a negative row count: -3") as caught:
        _append(path, SECOND)
    assert caught.value.path == str(path)


def test_spark_profile_does_not_append_to_files_unreadable_by_spark(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pqext.write_table(FIRST, path, footer="flatbuffers")
    with pytest.raises(ValueError, match="Spark does not read"):
        _append(path, SECOND, profile="spark")


@pytest.mark.spec("recovery.checkpoint.place")
@pytest.mark.filterwarnings("ignore::pqext.core.footer.checkpoints.RecoveredFileWarning")
@pytest.mark.parametrize("checkpoint", [None, 1])
def test_embedded_parquet_file_is_not_mistaken_for_the_file(tmp_path: Path, checkpoint: int | None) -> None:
    inner, path = tmp_path / "inner.parquet", tmp_path / "outer.parquet"
    plain: dict[str, Any] = {"compression": "uncompressed", "dictionary": False}
    pqext.write_table(pa.table({"secret": range(1000, 1100)}), inner, **plain)
    values = pa.array([inner.read_bytes(), b"\x28\xb5\x2f\xfd"], pa.binary())  # what a checkpoint begins with
    with pqext.ParquetWriter(
        path, pa.schema([("blob", pa.binary())]), checkpoint=checkpoint,
        encodings={"blob": "delta_length_byte_array"}, **plain,
    ) as writer:
        for _ in range(2):
            writer.write_table(pa.table({"blob": values}))
            writer.end_row_group()
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(inner.read_bytes()) + inner.stat().st_size + 4])  # before the last checkpoint
    if checkpoint is None:
        with pytest.raises(pqext.CorruptFileError):
            pqext.open(path, recover=True)
        return
    with pqext.open(path, recover=True) as file:
        assert file.schema.root.child_names == ["blob"]
        assert file.read()["blob"].to_pylist() == values.to_pylist()


def test_file_created_or_replaced_during_append_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    first = pqext.ParquetWriter(path, FIRST.schema, append=True)
    pqext.write_table(SECOND, path)
    first.write_table(FIRST)
    with pytest.raises(FileExistsError, match="append again"):
        first.close()
    assert pq.read_table(path).to_pylist() == SECOND.to_pylist()
    second = pqext.ParquetWriter(path, FIRST.schema, append=True)
    second.write_table(FIRST)
    pqext.write_table(SECOND, path)
    with pytest.raises(BlockingIOError, match="append again"):
        second.close()
    assert pq.read_table(path).to_pylist() == SECOND.to_pylist()


def test_crs_mismatch_is_rejected_before_writing(tmp_path: Path) -> None:
    import shapely

    path = tmp_path / "t.parquet"
    table = pa.table({"g": pa.array(shapely.to_wkb([shapely.Point(1.0, 2.0)]))})
    pqext.write_table(table, path, geometry={"g": "EPSG:3857"}, geoparquet=True)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"crs|CRS|schema"):
        pqext.ParquetWriter(path, table.schema, append=True, geometry={"g": "EPSG:4326"}, geoparquet=True)
    assert path.read_bytes() == before


@pytest.mark.spec("recovery.append")
def test_large_interrupted_append_opens_at_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pqext.core.footer.checkpoints._WINDOW", 1 << 10)
    path = tmp_path / "t.parquet"
    pqext.write_table(FIRST, path)
    _append(path, pa.concat_tables([SECOND] * 2000), compression="uncompressed", dictionary=False)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.warns(UserWarning, match="opened from the checkpoint"):
        assert pqext.read_table(path, recover=True).to_pylist() == FIRST.to_pylist()


_APPENDING = """
import sys
import pyarrow as pa
import pqext
path = sys.argv[1]
for at in range(0, 1 << 40, 50):
    part = range(at, at + 50)
    pqext.write_table(pa.table({"id": part, "text": [f"text {i}" for i in part]}), path, append=True, row_group_rows=20)
    print(at + 50, flush=True)
"""


def check_killed(folder: Path, times: int, seed: int) -> None:
    """Appends one after another, killed at random moments, lose no row that was there before the last one."""
    drawn = random.Random(seed)
    for number in range(times):
        path = folder / f"{number}.parquet"
        process = subprocess.Popen([sys.executable, "-c", _APPENDING, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(drawn.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        done = int((first + process.stdout.read()).split()[-1])
        process.wait()
        process.stdout.close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pqext.RecoveredFileWarning)
            with pqext.open(path, recover=True) as file:
                found = file.read()
        assert len(found) in (done, done + 50)
        assert found["id"].to_pylist() == list(range(len(found)))
        assert found["text"].to_pylist() == [f"text {i}" for i in range(len(found))]


@pytest.mark.spec("recovery.append")
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_killed_append_loses_no_existing_row(tmp_path: Path) -> None:
    check_killed(tmp_path, 2, 1)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_append_killed_at_40_moments_loses_no_row(tmp_path: Path) -> None:
    check_killed(tmp_path, 40, 2)


@pytest.mark.spec("recovery.append.alone")
def test_append_is_excluded_during_an_in_place_rewrite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    commit = Sink.commit

    def interrupted(sink: Sink) -> None:
        monkeypatch.setattr(Sink, "commit", commit)
        with pytest.raises(BlockingIOError, match="rewriting this file"):
            _append(path, SECOND)
        commit(sink)

    for rewrite in (partial(pqext.rewrite_footer, path, footer="thrift+index"), partial(pqext.repair, path, path)):
        pqext.write_table(FIRST, path)
        monkeypatch.setattr(Sink, "commit", interrupted)
        rewrite()
        _append(path, SECOND)
        assert pq.read_table(path).equals(BOTH)
        with pqext.ParquetWriter(path, FIRST.schema, append=True), pytest.raises(BlockingIOError, match="appending"):
            rewrite()
