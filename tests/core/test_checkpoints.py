"""A file whose writer died opens by its last checkpoint, with every row group before it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import struct
import subprocess
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.footer.checkpoints import CHECKPOINT, find_checkpoints
from pqext.core.format.compression import compress
from pqext.core.format.extension.framing import frame
from pqext.core.format.metadata import CompressionCodec, FileMetaData
from pqext.core.format.thrift import decode
from pqext.core.io import sink
from pqext.core.io.local_writers import temporary_prefix
from pqext.core.io.sources.locations import open_source
from reference.checkpoints import OWNER, checkpoints
from reference.effort import share

ROWS = 40
GROUPS = 10
TABLE = pa.table(
    {
        "id": range(ROWS * GROUPS),
        "name": [None if i % 7 == 0 else f"name {i % 90}" for i in range(ROWS * GROUPS)],
        "many": [list(range(i % 4)) for i in range(ROWS * GROUPS)],
    }
)


def written(table: pa.Table = TABLE, **options: Any) -> bytes:
    file = BytesIO()
    pqext.write_table(table, file, row_group_rows=ROWS, **{"checkpoint": 3, **options})
    return file.getvalue()


def opened(data: bytes) -> pa.Table:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pqext.open(data, recover=True) as file:
            found = file.read()
    assert all(issubclass(one.category, pqext.RecoveredFileWarning) for one in told)
    return found


def before(data: bytes) -> int:
    """Rows before the last checkpoint, as the slow twin finds it."""
    found = checkpoints(data)
    if not found:
        return 0
    metadata, _ = decode(FileMetaData, found[-1].footer)
    return sum(group.num_rows for group in metadata.row_groups)


WHOLE = written()


@pytest.mark.spec("recovery.checkpoint.ordinary")
@pytest.mark.parametrize("options", [{}, {"footer": "thrift+index"}, {"bloom_filters": True}])
def test_finished_file_with_checkpoints_is_ordinary_parquet(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(data := written(**options))
    assert len(checkpoints(data)) == 3
    assert pq.read_table(path) == TABLE
    assert duckdb.read_parquet(str(path)).order("id").to_arrow_table().to_pylist() == TABLE.to_pylist()
    assert polars.read_parquet(path).to_arrow().to_pylist() == TABLE.to_pylist()
    assert pqext.read_table(path) == TABLE
    assert pqext.verify(path).ok


@pytest.mark.spec("layout.repeated-metadata")
@pytest.mark.spec("recovery.checkpoint")
@pytest.mark.spec("recovery.checkpoint.frame")
def test_checkpoint_is_a_complete_footer() -> None:
    found = checkpoints(WHOLE)
    counts = []
    for one in found:
        metadata, end = decode(FileMetaData, one.footer)
        assert end == len(one.footer)
        cut = WHOLE[: one.start] + one.footer + len(one.footer).to_bytes(4, "little") + b"PAR1"
        theirs = pq.read_table(BytesIO(cut))
        assert theirs == TABLE.slice(0, len(theirs))
        assert metadata.num_rows == len(theirs)
        counts.append(len(metadata.row_groups))
    assert counts == [3, 6, 9]


@pytest.mark.spec("recovery.checkpoint")
@pytest.mark.parametrize(
    ("groups", "columns"), [(2, 14), (14, 1), (15, 15), (16, 16), (127, 1), (128, 1), (2, 127), (2, 128)]
)
def test_checkpoint_contains_any_number_of_row_groups_and_columns(groups: int, columns: int) -> None:
    # Thrift stores list sizes from 15 on as varints, which have two bytes from 128 on.
    table = pa.table({f"c{column}": range(groups + 1) for column in range(columns)})
    pqext.write_table(table, file := BytesIO(), row_group_rows=1, checkpoint=groups)
    data = file.getvalue()
    (checkpoint,) = checkpoints(data)
    size = len(checkpoint.footer).to_bytes(4, "little")
    theirs = pq.ParquetFile(BytesIO(data[: checkpoint.start] + checkpoint.footer + size + b"PAR1"))
    assert theirs.num_row_groups == groups
    assert theirs.read() == table.slice(0, groups)
    assert opened(data[:-1]) == table.slice(0, groups)


@pytest.mark.spec("recovery.checkpoint.chain")
def test_each_checkpoint_points_to_the_previous_one() -> None:
    found = checkpoints(WHOLE)
    assert [one.before for one in found] == [(0, 0), *((one.start, one.stop - one.start) for one in found[:-1])]
    data = bytearray(WHOLE)
    data[found[-1].start] ^= 1  # its footer; the tail still leads on
    told = [(one.offset, one.length) for one in find_checkpoints(open_source(bytes(data)), DEFAULT_LIMITS)]
    assert told == [(one.start, one.stop - one.start) for one in found[1::-1]]
    data[found[1].stop - 1] ^= 1
    assert len(opened(bytes(data[: found[-1].stop]))) == 3 * ROWS


@pytest.mark.spec("recovery.checkpoint.open")
def test_file_truncated_anywhere_has_the_rows_of_its_last_checkpoint(tmp_path: Path) -> None:
    first = checkpoints(WHOLE)[0].stop
    cuts = sorted({first, len(WHOLE) - 1, *random.Random(5).sample(range(first, len(WHOLE)), share(0.4))})
    for cut in cuts:
        data = WHOLE[:cut]
        rows = before(data)
        assert rows >= 3 * ROWS
        assert opened(data) == TABLE.slice(0, rows)
        done = pqext.recover(data, tmp_path / "rest.parquet")
        rest = pq.read_table(tmp_path / "rest.parquet")
        assert done.rows == len(rest) >= rows
        assert rest == TABLE.slice(0, len(rest))


@pytest.mark.spec("recovery.checkpoint.open")
def test_complete_file_or_file_without_checkpoint_opens_as_usual() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pqext.open(WHOLE, recover=True) as file:
            assert file.read() == TABLE
    for data in (WHOLE[:500], b"", b"PAR1", WHOLE[: checkpoints(WHOLE)[0].stop - 1]):
        with pytest.raises(pqext.CorruptFileError):
            pqext.open(data, recover=True)
    with pytest.raises(pqext.CorruptFileError):
        pqext.open(WHOLE[:-1])
    message = r"opened from the checkpoint at offset [0-9,]+, which covers 360 rows"
    with pytest.warns(pqext.RecoveredFileWarning, match=message):
        pqext.open(WHOLE[:-1], recover=True).close()


@pytest.mark.spec("recovery.checkpoint")
def test_corrupt_checkpoint_falls_back_to_an_earlier_one() -> None:
    found = checkpoints(WHOLE)
    data = WHOLE[: found[1].stop]
    places = [*range(found[0].start, found[0].stop), *range(found[1].start, found[1].stop)]
    for at in random.Random(6).sample(places, min(share(3.0), len(places))):
        changed = bytearray(data)
        changed[at] ^= random.Random(at).randrange(1, 256)
        rows = before(bytes(changed))
        assert rows in (3 * ROWS, 6 * ROWS)
        assert opened(bytes(changed)) == TABLE.slice(0, rows)


@pytest.mark.spec("recovery.checkpoint.place")
def test_checkpoint_at_another_offset_than_stated_is_ignored() -> None:
    held = written(pa.table({"blob": [WHOLE]}), compression="uncompressed", checkpoint=None, dictionary=False)
    assert held.count(OWNER) == 3
    with pytest.raises(pqext.CorruptFileError):
        pqext.open(held[:-1], recover=True)
    with pytest.raises(pqext.CorruptFileError):
        pqext.open(b"PAR1" + WHOLE[:-1], recover=True)


@pytest.mark.spec("recovery.checkpoint")
@pytest.mark.parametrize("place", ["row_group", "file"])
def test_checkpoints_include_geometries_filters_and_variants(place: Any) -> None:
    events = pqext.variant.parse_json([f'{{"a": {i}}}' for i in range(180)])
    points = pqext.geo.from_points([float(i) for i in range(180)], [1.0] * 180)
    fields = [pqext.geo.geometry_field("g"), pa.field("v", events.type), pa.field("s", pa.string())]
    table = pa.table([points, events, pa.array([str(i) for i in range(180)])], pa.schema(fields))
    options: dict[str, Any] = {
        "geoparquet": True, "shredding": {"v": "infer"},
        "bloom_filters": {"s": True}, "bloom_filter_place": place, "row_group_rows": 60,
    }  # fmt: skip
    file = BytesIO()
    pqext.write_table(table, file, checkpoint=1, **options)
    whole = pqext.read_table(file.getvalue())
    rest = opened(file.getvalue()[:-1])
    assert rest.to_pylist() == whole.to_pylist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pqext.open(file.getvalue()[:-1], recover=True) as recovered:
            assert recovered.row_groups[0].chunk("s").has_bloom_filter == (place == "row_group")


def test_checkpoints_are_written_by_bytes_and_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    one = len(checkpoints(written(checkpoint=pqext.Checkpoint(bytes=1))))
    assert one == GROUPS
    assert not checkpoints(written(checkpoint=pqext.Checkpoint(bytes=1 << 30)))
    now = iter(range(0, 1000, 10))
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    assert len(checkpoints(written(checkpoint=pqext.Checkpoint(seconds=25)))) == 3
    monkeypatch.undo()
    for wrong in (0, -1, True, "3", 1.5j):
        with pytest.raises((ValueError, TypeError)):
            written(checkpoint=wrong)
    with pytest.raises(ValueError, match="positive number"):
        pqext.Checkpoint()
    for given in ({"row_groups": 2.5}, {"row_groups": 2.0}, {"bytes": 0.5}):
        with pytest.raises(ValueError, match="must be an integer"):
            pqext.Checkpoint(**given)
    with pytest.raises(ValueError, match="must be an integer"):
        written(checkpoint=2.5)


@pytest.mark.spec("recovery.checkpoint.plaintext")
def test_encrypted_and_remote_files_have_no_checkpoints() -> None:
    keys = pqext.encryption.FileEncryption(footer_key=b"0" * 16)
    with pytest.raises(ValueError, match="would expose encrypted data"):
        written(encryption=keys)
    with pytest.raises(ValueError, match="object stores do not keep unfinished files"):
        pqext.write_table(TABLE, "memory://a.parquet", checkpoint=1)


@pytest.mark.spec("recovery.durable")
def test_durable_file_is_synced_before_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, str]] = []
    sync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        done.append(("fsync", os.readlink(f"/proc/self/fd/{descriptor}")))
        sync(descriptor)

    def replaced(old: str, new: str) -> None:
        done.append(("replace", new))
        replace(old, new)

    monkeypatch.setattr(sink.os, "fsync", synced)
    monkeypatch.setattr(sink.os, "replace", replaced)
    path = str(tmp_path / "a.parquet")
    pqext.write_table(TABLE, path, durable=True)
    (first, unfinished), second, third = done
    assert first == "fsync"
    assert ".pqext-" in unfinished
    assert (second, third) == (("replace", path), ("fsync", str(tmp_path)))
    done.clear()
    pqext.write_table(TABLE, path)
    assert done == [("replace", path)]
    pqext.write_table(TABLE, path, durable=True, checkpoint=1, row_group_rows=ROWS)
    assert [what for what, _ in done] == ["replace", *["fsync"] * (GROUPS + 1), "replace", "fsync"]
    with pytest.raises(TypeError, match="durable"):
        pqext.write_table(TABLE, path, durable=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="durable needs a path"):
        pqext.write_table(TABLE, BytesIO(), durable=True)


_WRITERS = """
import os
import sys
import pyarrow as pa
import pqext
schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
for line in sys.stdin:  # what is imported once is there in each fork
    path, rows = line.rstrip().rsplit(" ", 1)
    process = os.fork()
    if process:
        os.waitpid(process, 0)
        print("gone", flush=True)
        continue
    rows = int(rows)
    with pqext.ParquetWriter(path, schema, checkpoint=3, row_group_rows=rows) as writer:
        at = 0
        while at < rows * 3000:
            part = range(at, at + rows)
            writer.write_table(pa.table({"id": part, "text": [f"text {i}" for i in part]}))
            at += rows
            if at == 3 * rows:
                print(os.getpid(), flush=True)
"""


@contextlib.contextmanager
def writers() -> Iterator[Callable[..., Path]]:
    """A function that gives what a writer leaves that is killed so many seconds after its first checkpoint."""
    with subprocess.Popen([sys.executable, "-c", _WRITERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        asked, told = server.stdin, server.stdout

        def killed(folder: Path, seconds: float, rows: int = 60) -> Path:
            asked.write(f"{folder / 'a.parquet'} {rows}\n".encode())
            asked.flush()
            process = int(told.readline())
            time.sleep(seconds)
            os.kill(process, signal.SIGKILL)
            assert told.readline() == b"gone\n"
            (left,) = folder.glob(".pqext-*.tmp")
            return left

        yield killed


def check_killed(folder: Path, times: int, seed: int) -> None:
    drawn = random.Random(seed)
    with writers() as killed:
        for number in range(times):
            place = folder / str(number)
            place.mkdir()
            left = killed(place, drawn.uniform(0, 0.08))
            data = left.read_bytes()
            rows = before(data)
            done = pqext.recover(left, place / "rest.parquet")
            rest = pq.read_table(place / "rest.parquet")
            assert done.rows == len(rest) >= rows >= 180
            assert rest["id"].to_pylist() == list(range(len(rest)))
            assert rest["text"].to_pylist() == [f"text {i}" for i in range(len(rest))]
            assert opened(data)["id"].to_pylist() == list(range(rows))
            with contextlib.suppress(FileNotFoundError):
                left.unlink()


@pytest.mark.spec("recovery.checkpoint.open")
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_killed_writer_leaves_rows_of_its_last_checkpoint(tmp_path: Path) -> None:
    check_killed(tmp_path, 2, 1)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_writer_killed_at_200_moments_is_recoverable(tmp_path: Path) -> None:
    check_killed(tmp_path, 200, 2)


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_recovery_of_the_target_path_reports_the_temporary_file(tmp_path: Path) -> None:
    with writers() as killed:
        left = killed(tmp_path, 0.0)
    with pytest.raises(FileNotFoundError, match=f"an interrupted writer left .*{left.name}: recover its rows"):
        pqext.recover(tmp_path / "a.parquet", tmp_path / "rest.parquet")
    with pytest.raises(FileNotFoundError) as told:
        pqext.recover(tmp_path / "b.parquet", tmp_path / "rest.parquet")
    assert "writer" not in str(told.value)


@pytest.mark.spec("recovery.checkpoint.open")
def test_footer_with_an_invalid_schema_falls_back_to_the_checkpoint() -> None:
    data = bytearray(written())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    name = data.index(b"id", footer)
    data[name - 5] = 0x7E  # a physical type that there is not
    with pytest.raises((pqext.CorruptFileError, pqext.UnsupportedError)):
        pqext.open(bytes(data)).read()
    assert opened(bytes(data)) == TABLE.slice(0, ROWS * 9)


def test_error_for_an_unfinished_file_names_it_for_recovery(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    left = tmp_path / f"{temporary_prefix(str(path))}0123.tmp"
    left.write_bytes(written()[:-8])
    with pytest.raises(FileNotFoundError, match=r"left .*0123\.tmp: recover its rows"):
        pqext.open(path, recover=True)
    with pytest.raises(FileNotFoundError) as plain:
        pqext.open(path)
    assert "recover" not in str(plain.value)


def test_checkpoint_that_decompresses_to_too_much_is_ignored() -> None:
    raw = bytes(compress(CompressionCodec.ZSTD, bytes(1 << 24)))
    about = struct.pack("<BIQQI", 1, 1 << 24, 4, 0, 0)
    made = b"PAR1" + frame(raw + about + zlib.crc32(about).to_bytes(4, "little"), CHECKPOINT)
    with open_source(made) as source:
        assert list(find_checkpoints(source, DEFAULT_LIMITS)) == []


def temporary_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.startswith(".pqext-"))


def fail(writer: pqext.ParquetWriter, groups: int) -> None:
    with writer:
        for group in range(groups):
            writer.write_table(TABLE.slice(group * ROWS, ROWS))
        writer.end_row_group()
        raise KeyError("a fault of the script")


@pytest.mark.spec("recovery.checkpoint.left")
def test_exception_leaves_rows_of_the_last_checkpoint_and_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"what was there before")
    with pytest.raises(KeyError) as raised:
        fail(pqext.ParquetWriter(path, TABLE.schema, checkpoint=3, row_group_rows=ROWS), 8)
    (left,) = temporary_files(tmp_path)
    assert str(left) in raised.value.__notes__[0]
    assert path.read_bytes() == b"what was there before"
    with pytest.warns(pqext.RecoveredFileWarning), pqext.open(left, recover=True) as file:
        assert file.read() == TABLE.slice(0, 6 * ROWS)


@pytest.mark.spec("recovery.checkpoint.left")
def test_value_that_cannot_be_stored_loses_no_checkpoint(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    writer = pqext.ParquetWriter(tmp_path / "a.parquet", schema, checkpoint=1, row_group_rows=2)
    writer.write_table(pa.table({"a": [1, 2]}))
    with pytest.raises(ValueError, match="not nullable") as raised:
        writer.write_table(pa.table({"a": pa.array([3, None])}))
    (left,) = temporary_files(tmp_path)
    assert str(left) in raised.value.__notes__[0]
    with pytest.warns(pqext.RecoveredFileWarning):
        assert pqext.read_table(left, recover=True)["a"].to_pylist() == [1, 2]


@pytest.mark.spec("recovery.checkpoint.left")
def test_script_that_exits_early_leaves_its_checkpoints(tmp_path: Path) -> None:
    writing = "w = pqext.ParquetWriter(sys.argv[1], t.schema, checkpoint=1); w.write_table(t); w.end_row_group(); 1 / 0"
    script = f"import sys, pqext, pyarrow as pa; t = pa.table({{'a': [1, 2]}}); {writing}"
    died = subprocess.run([sys.executable, "-c", script, tmp_path / "a.parquet"], check=False, capture_output=True)
    assert b"ZeroDivisionError" in died.stderr
    (left,) = temporary_files(tmp_path)
    with pytest.warns(pqext.RecoveredFileWarning):
        assert pqext.read_table(left, recover=True)["a"].to_pylist() == [1, 2]


@pytest.mark.spec("recovery.checkpoint.left")
def test_abort_or_no_checkpoint_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for options in ({}, {"checkpoint": 9}):
        with pytest.raises(KeyError) as raised:
            fail(pqext.ParquetWriter(path, TABLE.schema, row_group_rows=ROWS, **options), 8)
        assert not hasattr(raised.value, "__notes__")
    writer = pqext.ParquetWriter(path, TABLE.schema, row_group_rows=ROWS, checkpoint=1)
    writer.write_table(TABLE)
    assert len(temporary_files(tmp_path)) == 1
    writer.abort()
    pqext.write_table(TABLE, path, row_group_rows=ROWS, checkpoint=1)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.spec("recovery.checkpoint.left")
def test_file_that_cannot_be_renamed_stays_if_it_has_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"

    def deny(*_: object) -> None:
        raise PermissionError(13, "not today")

    monkeypatch.setattr(os, "replace", deny)
    with pytest.raises(PermissionError) as caught:
        pqext.write_table(TABLE, path, checkpoint=3, row_group_rows=ROWS)
    (left,) = tmp_path.iterdir()
    assert str(left) in caught.value.__notes__[0]
    assert opened(left.read_bytes()) == TABLE
    left.unlink()
    with pytest.raises(PermissionError) as caught:
        pqext.write_table(TABLE, path, row_group_rows=ROWS)
    assert not hasattr(caught.value, "__notes__")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("recovery.checkpoint.left")
def test_failure_of_the_first_checkpoint_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "writev", full, raising=False)
    with pytest.raises(OSError, match="No space left") as caught:
        pqext.write_table(TABLE, tmp_path / "t.parquet", checkpoint=1, row_group_rows=ROWS)
    assert not hasattr(caught.value, "__notes__")
    assert list(tmp_path.iterdir()) == []
