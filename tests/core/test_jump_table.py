"""A footer with a jump table is read as far as it is asked for, and says what it says without one."""

from __future__ import annotations

import io
import warnings
import zlib
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.strategies import shown, tables
from core.test_footer import everything
from hypothesis import given, settings

import pqext
from pqext.core.base.errors import ParquetError
from pqext.core.footer import reading as footers
from pqext.core.footer.jump_table import jump_table
from pqext.core.footer.jump_table.footer import IndexedFooter
from pqext.core.footer.jump_table.jump_table import JUMP_TABLE
from pqext.core.format.extension.framing import FRAME_BYTES, frame
from pqext.core.format.extension.structure import append_extension
from pqext.core.indexes.reading import DamagedIndexWarning
from pqext.core.io.source import Source
from pqext.core.schema.nodes import SchemaNode
from reference import jump_table as slowly
from reference.effort import share, some

ROWS = 12
SMALL = pa.table(
    {
        "number": pa.array(range(ROWS), pa.int32()),
        "text": [f"{i}" for i in range(ROWS)],
        "list": [[i, i + 1] for i in range(ROWS)],
        "when": pa.array(range(ROWS), pa.timestamp("us")),
        "deep": [{"a": {"b": float(i)}, "c": i} for i in range(ROWS)],
        "last": pa.array(range(ROWS), pa.int64()),
    }
)


@pytest.fixture(autouse=True)
def _short_footers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footers, "LEAST_INDEXED", 0)


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **{"footer": "thrift+index", "row_group_rows": 5, **options})
    return out.getvalue()


def footer_of(file: bytes) -> bytes:
    return file[-8 - int.from_bytes(file[-8:-4], "little") : -8]


def with_footer(file: bytes, footer: bytes) -> bytes:
    return file[: len(file) - 8 - len(footer_of(file))] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def wide(columns: int, **options: Any) -> bytes:
    table = pa.table({f"column {i}": np.arange(i, i + 20) for i in range(columns)})
    return written(table, **options)


def is_indexed(file: pqext.ParquetFile) -> bool:
    return isinstance(file.footer, IndexedFooter)


def nodes(node: SchemaNode) -> list[Any]:
    about = (
        node.path, node.repetition, node.physical_type, node.logical_type, node.leaf_start, node.leaf_stop,
        node.max_definition_level, node.max_repetition_level, node.field_id,
    )
    return [about, *(below for child in node.children for below in nodes(child))]


@pytest.mark.spec("extension.jump-table")
@settings(max_examples=share(0.5))
@given(tables(width=(1, 5)))
def test_jump_table_follows_its_specification(table: pa.Table) -> None:
    footer = footer_of(written(table))
    slowly.check(footer)
    assert append_extension(footer_of(written(table, footer="thrift")), footer[-29 - _size(footer) : -1]) == footer


def _size(footer: bytes) -> int:
    return int.from_bytes(footer[-25:-21], "little")


@pytest.mark.spec("extension.jump-table")
def test_multi_block_jump_tables_follow_their_specification() -> None:
    slowly.check(footer_of(wide(700)))
    slowly.check(footer_of(wide(3, row_group_rows=1)))


@pytest.mark.spec("extension.jump-table.equal")
@settings(max_examples=share(0.5))
@given(tables(width=(1, 5)))
def test_every_fact_is_equal_with_and_without_a_jump_table(table: pa.Table) -> None:
    file = written(table)
    plain = pqext.open(with_footer(file, footer_of(written(table, footer="thrift"))))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DamagedIndexWarning)
        for node in plain.schema.leaves:
            for group in plain.row_groups:
                opened = pqext.open(file)
                assert is_indexed(opened)
                found = opened.row_groups[group.index]
                assert found.num_rows == group.num_rows
                assert found.chunk(node.dotted_path).metadata == group.chunk(node).metadata
                assert found.bounds(opened.schema.leaves[node.leaf_start]) == group.bounds(node)
                assert opened.schema.leaves[node.leaf_start].path == node.path
        for name in table.column_names:
            assert shown(pqext.open(file).read([name])) == shown(plain.read([name]))
        assert shown(pqext.open(file).read()) == shown(plain.read())
        opened = pqext.open(file)
        assert nodes(opened.schema.root) == nodes(plain.schema.root)
        opened = pqext.open(file)
        assert everything(opened.metadata) == everything(plain.metadata)


@pytest.mark.spec("extension.jump-table.equal")
def test_row_groups_and_columns_are_sequences() -> None:
    table = pa.table({f"c{number}": range(number, number + 9) for number in range(20)})
    expected = pq.ParquetFile(io.BytesIO(written(table, row_group_rows=2))).metadata
    with pqext.open(written(table, row_group_rows=2)) as file:
        assert is_indexed(file)
        groups = file.metadata.row_groups
        rows = [expected.row_group(number).num_rows for number in range(expected.num_row_groups)]
        assert [group.num_rows for group in groups[-2:]] == rows[-2:]
        assert [group.num_rows for group in groups[::-1]] == rows[::-1]
        columns = groups[-1].columns
        for position in (0, 7, -1, -20):
            column = expected.row_group(4).column(position % 20)
            assert columns[position].meta_data.path_in_schema == [column.path_in_schema]
            assert columns[position].meta_data.total_compressed_size == column.total_compressed_size
        for position in (20, -21):
            with pytest.raises(IndexError):
                columns[position]


@pytest.mark.spec("extension.jump-table.equal")
def test_each_column_has_its_own_order() -> None:
    table = pa.table({f"{i}": pa.array([i], pa.float64() if i % 3 else pa.int64()) for i in range(20)})
    plain = pqext.open(written(table, float_order="ieee754", footer="thrift"))
    for at in range(20):
        file = pqext.open(written(table, float_order="ieee754"))
        assert is_indexed(file)
        assert file.row_groups[0].chunk(at).order == plain.row_groups[0].chunk(at).order


@pytest.mark.spec("extension.jump-table.equal")
def test_columns_are_found_by_arbitrary_names() -> None:
    names = ["a", "", "ä", "a.b", "A", "x" * 5000, "twice", "twice", *(f"n{i}" for i in range(3000))]
    table = pa.Table.from_arrays([pa.array([i]) for i in range(len(names))], names=names)
    out = io.BytesIO()
    pqext.write_table(table, out, footer="thrift+index")
    for name in names[:8]:
        file = pqext.open(out.getvalue())
        assert file.schema.root.position(name) == names.index(name)
        assert file.schema.root.is_unique(name) == (name != "twice")
        assert is_indexed(file)
        assert not file.footer.lookup.is_whole  # type: ignore[attr-defined]
    file = pqext.open(out.getvalue())
    assert file.schema.root.child("none") is None
    assert file.schema.find("n2999").leaf_start == 3007  # type: ignore[union-attr]
    assert file.schema.root.child_names == names


@pytest.mark.spec("extension.jump-table.equal")
def test_many_row_groups_are_supported() -> None:
    table = pa.table({f"{i}": range(i, i + 150) for i in range(3)})
    file = written(table, row_group_rows=1)
    for at in (0, 63, 64, 149):
        with pqext.open(file) as opened:
            assert is_indexed(opened)
            assert [opened.row_groups[at].chunk(i).bounds().minimum for i in range(3)] == [at, at + 1, at + 2]
    with pqext.open(file) as opened:
        assert opened.num_rows == 150
        assert opened.read(["1"])["1"].to_pylist() == list(range(1, 151))


@pytest.mark.spec("extension.jump-table.little")
def test_wide_file_reads_little_more_than_one_column() -> None:
    file = wide(3000, arrow_schema=False)
    with pqext.open(file) as opened:
        assert is_indexed(opened)
        assert opened.read(["column 2345"])["column 2345"].to_pylist() == list(range(2345, 2365))
        assert opened.source.bytes_read < len(footer_of(file)) / 8
    with pqext.open(file) as opened:
        assert opened.read().num_columns == 3000
        assert opened.source.bytes_read < 1.5 * len(file)


@pytest.mark.spec("extension.jump-table.equal")
@pytest.mark.parametrize("share", [0, 0.01, 0.2, 0.9])
def test_jump_table_may_be_among_the_bytes_fetched_first(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    file = wide(300, arrow_schema=False)
    monkeypatch.setattr(Source, "tail_bytes", int(share * len(footer_of(file))))
    monkeypatch.setattr(Source, "merge_gap", 0)
    with pqext.open(io.BytesIO(file)) as opened:
        assert is_indexed(opened)
        assert opened.read(["column 234"]).equals(pq.read_table(io.BytesIO(file), columns=["column 234"]))


@pytest.mark.spec("extension.jump-table.little")
def test_full_footer_is_read_after_a_quarter_was_used() -> None:
    file = wide(3000, arrow_schema=False)
    with pqext.open(file) as opened:
        fetched = [opened.source.bytes_read]
        for number in range(3000):
            leaf = opened.schema.find(f"column {number}")
            assert leaf is not None
            opened.row_groups[0].chunk(leaf)
            fetched.append(opened.source.bytes_read)
    footer = len(footer_of(file))
    last, before = sorted({*fetched}, reverse=True)[:2]
    assert footer / 4 < before < footer / 3
    assert last - before >= footer


@pytest.mark.spec("extension.jump-table.little")
def test_structures_of_a_column_are_fetched_together() -> None:
    file = wide(1000, row_group_rows=1)
    with pqext.open(file) as opened:
        leaf = opened.schema.find("column 7")
        assert leaf is not None
        opened.row_groups[0].chunk(leaf)
        before = opened.source.bytes_read
        assert [group.chunk(leaf).bounds().minimum for group in opened.row_groups] == list(range(7, 27))
        assert opened.source.bytes_read == before


def outcome(file: bytes, name: str) -> Any:
    """What is read of a column, and what was told meanwhile."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            with pqext.open(file) as opened:
                values = opened.read([name])[name].to_pylist()
        except (ParquetError, KeyError) as error:  # the name may be damaged
            return error
        return values, any(warning.category is DamagedIndexWarning for warning in told)


@pytest.mark.spec("extension.jump-table.checked")
def test_each_byte_of_a_jump_table_may_be_corrupt() -> None:
    file = written(SMALL)
    footer = footer_of(file)
    start = len(footer) - 29 - _size(footer)
    told = 0
    for at in range(start, len(footer) - 1):
        damaged = bytearray(footer)
        damaged[at] ^= (1, 128, 255)[at % 3]
        name = ("text", "deep")[at % 2]
        values, warned = outcome(with_footer(file, bytes(damaged)), name)
        assert values == SMALL[name].to_pylist()
        told += warned
    assert told > (len(footer) - start) / 4


@pytest.mark.spec("extension.jump-table.checked")
def test_jump_table_may_be_truncated_anywhere() -> None:
    file = written(SMALL)
    footer = footer_of(file)
    thrift = footer_of(written(SMALL, footer="thrift"))
    extension = footer[-1 - FRAME_BYTES - _size(footer) : -1]
    for at in range(len(extension)):
        parts = (extension[:at], extension[at:], frame(extension[at:-FRAME_BYTES], JUMP_TABLE))
        for part in parts if at < 40 or at > len(extension) - 40 else parts[at % 3 : at % 3 + 1]:
            values, _ = outcome(with_footer(file, append_extension(thrift, part)), "last")
            assert values == SMALL["last"].to_pylist()


@pytest.mark.spec("extension.jump-table.checked")
def test_parts_read_from_a_corrupt_footer_are_checked() -> None:
    file = written(SMALL)
    footer = footer_of(file)
    thrift_bytes = slowly.split(footer)[0]["thrift_bytes"]
    right = SMALL["number"].to_pylist()
    errors = 0
    positions = some(range(thrift_bytes), 3)
    for at in positions:
        damaged = bytearray(footer)
        damaged[at] ^= 1 << at // 3 % 8
        found = outcome(with_footer(file, bytes(damaged)), "number")
        if isinstance(found, Exception):
            errors += 1
        elif found[0] != right:  # it is what reading without a table gives too, which knows no checksum
            assert found[1]
            assert outcome(with_footer(file, bytes(damaged[:thrift_bytes]) + b"\0"), "number")[0] == found[0]
    assert 0 < errors < len(positions)


@pytest.mark.spec("extension.jump-table.checked")
def test_jump_table_of_another_footer_is_ignored_with_a_warning() -> None:
    file = written(SMALL)
    other = written(SMALL.rename_columns([name.upper() for name in SMALL.column_names]))
    footer, thrift = footer_of(other), footer_of(written(SMALL, footer="thrift"))
    extension = footer[-1 - FRAME_BYTES - _size(footer) : -1]
    assert outcome(with_footer(file, append_extension(thrift, extension)), "text") == (SMALL["text"].to_pylist(), True)


@pytest.mark.spec("extension.jump-table.checked")
def test_jump_table_of_fewer_fields_is_ignored_with_a_warning() -> None:
    file = written(SMALL)
    footer, thrift = footer_of(file), footer_of(written(SMALL, footer="thrift"))
    longer = thrift[:-1] + b"\x08\xc8\x01\x03abc\0"  # field 100
    changed = with_footer(file, append_extension(longer, footer[-1 - FRAME_BYTES - _size(footer) : -1]))
    assert outcome(changed, "text") == (SMALL["text"].to_pylist(), True)
    with pytest.warns(DamagedIndexWarning, match="belongs to another footer"):
        assert pqext.open(changed).metadata.unknown


@pytest.mark.spec("extension.jump-table.checked")
@pytest.mark.parametrize(("overlap", "message"), [(0, "belongs to another footer"), (1, "larger than the extension")])
def test_jump_table_that_leaves_no_bytes_for_its_extension_is_ignored(overlap: int, message: str) -> None:
    file = written(SMALL)
    footer = footer_of(file)
    sections = slowly.split(footer)[2]
    table_start = len(footer) - 1 - FRAME_BYTES - _size(footer)
    with pytest.warns(DamagedIndexWarning, match=message):
        assert pqext.open(with_table(file, sections, thrift_bytes=table_start + overlap)).num_rows == ROWS


@pytest.mark.spec("extension.jump-table.ignored")
def test_other_readers_ignore_a_jump_table(tmp_path: Any) -> None:
    path = tmp_path / "indexed.parquet"
    path.write_bytes(written(SMALL))
    assert pq.read_table(path).equals(SMALL)
    found = duckdb.sql(f"FROM '{path}'").to_arrow_table()  # type: ignore[union-attr]
    assert found.to_pylist() == SMALL.to_pylist()
    assert pl.read_parquet(path).to_arrow().to_pylist() == SMALL.to_pylist()


@pytest.mark.spec("extension.jump-table.ignored")
def test_fields_before_a_jump_table_equal_those_without_it() -> None:
    plain, indexed = written(SMALL, footer="thrift"), written(SMALL)
    thrift = footer_of(plain)
    assert footer_of(indexed).startswith(thrift[:-1])
    assert plain == written(SMALL, footer="thrift", row_group_rows=5)
    assert not pqext.open(plain).extensions
    assert list(pqext.open(indexed).extensions) == ["file"]


@pytest.mark.spec("extension.jump-table.unchanged")
def test_footer_change_invalidates_the_jump_table(tmp_path: Any) -> None:
    path, joined = tmp_path / "a.parquet", tmp_path / "b.parquet"
    path.write_bytes(written(SMALL))
    pqext.concatenate([path, path], joined)
    assert pqext.read_table(joined).num_rows == 2 * ROWS
    pqext.rewrite_footer(path, lambda metadata: None)
    for one in (path, joined):
        assert not pqext.open(one).extensions


def test_options_incompatible_with_a_jump_table_are_rejected() -> None:
    with pytest.raises(ValueError, match="uses the same extension as extensions"):
        pqext.WriteOptions(footer="thrift+index", extensions={"file": b"mine"})
    with pytest.raises(ValueError, match="cannot be encrypted"):
        pqext.WriteOptions(footer="thrift+index", encryption=pqext.encryption.FileEncryption(b"0" * 16))
    with pytest.raises(ValueError, match="footer must be"):
        pqext.WriteOptions(footer="flat")  # type: ignore[arg-type]


def test_files_without_rows_or_columns_can_be_written() -> None:
    assert pqext.open(written(SMALL[:0])).read(["text"]).num_rows == 0
    empty = pa.table({"a": [1, 2]}).select([])
    assert pqext.open(written(empty)).read().num_columns == 0


def test_unusual_footers_have_no_jump_table() -> None:
    thrift = footer_of(written(SMALL, footer="thrift"))
    assert jump_table.build(thrift) is not None
    assert jump_table.build(append_extension(thrift, b"x")) is None


def with_table(file: bytes, sections: bytes, **about: int) -> bytes:
    """The file with a table of other sections, and of a root that says otherwise, under checksums that fit."""
    root, thrift, _, _ = slowly.split(footer_of(file))
    size = about.get("block_bytes", 4096)
    crcs = [zlib.crc32(part[at : at + size]) for part in (thrift, sections) for at in range(0, len(part), size)]
    listed = np.array(crcs, "<u4").tobytes()
    told = jump_table.Root(**{**root, **about, "section_bytes": len(sections), "crc_list": zlib.crc32(listed)}).encode()
    return with_footer(file, append_extension(thrift + b"\0", frame(sections + listed + told, JUMP_TABLE)))


def swap_names(file: bytes) -> bytes:
    """A file whose table names the first two columns the wrong way round, with checksums that fit."""
    root, _, sections, _ = slowly.split(footer_of(file))
    numbers = np.frombuffer(sections, "<u4").copy()
    first, second = (int(np.nonzero(numbers[1 : 2 * root["tops"] : 2] == at)[0][0]) * 2 + 1 for at in (0, 1))
    numbers[first], numbers[second] = 1, 0
    chunks = numbers[jump_table.Root(**root).chunk_offsets_offset // 4 :].reshape(-1, root["row_groups"])
    assert chunks.shape[0] == root["columns"] + 1
    return with_table(file, numbers.tobytes())


@pytest.mark.spec("extension.jump-table.checked")
def test_jump_table_does_not_lead_to_another_row_group() -> None:
    file = written(SMALL, row_group_rows=3)
    root, _, sections, _ = slowly.split(footer_of(file))
    numbers = np.frombuffer(sections, "<u4").copy()
    places = numbers[jump_table.Root(**root).chunk_offsets_offset // 4 :].reshape(-1, root["row_groups"])
    places[0:2, 1] = places[0:2, 2]
    with pytest.warns(DamagedIndexWarning, match="a chunk of another row group"):
        assert pqext.read_table(with_table(file, numbers.tobytes()), columns=["number"]).equals(SMALL.select([0]))


@pytest.mark.spec("extension.jump-table.checked")
def test_jump_table_of_tiny_blocks_is_ignored_with_a_warning() -> None:
    file = written(SMALL)
    sections = slowly.split(footer_of(file))[2]
    for size in (1, 255):
        with pytest.warns(DamagedIndexWarning, match="is inconsistent"):
            assert pqext.open(with_table(file, sections, block_bytes=size)).read().equals(SMALL)
    with pqext.open(with_table(file, sections, block_bytes=256)) as indexed:
        assert is_indexed(indexed)
        assert indexed.read().equals(SMALL)


@pytest.mark.spec("extension.jump-table.checked")
def test_jump_table_of_too_few_row_groups_is_ignored_with_a_warning() -> None:
    file = written(SMALL, row_group_rows=3)
    root, _, sections, _ = slowly.split(footer_of(file))
    about = jump_table.Root(**root)
    for count in (0, 2):
        places = np.frombuffer(sections[about.chunk_offsets_offset :], "<u4").reshape(-1, root["row_groups"])[:, :count]
        fewer = sections[: about.row_groups_offset + count * jump_table.GROUP_BYTES] + places.tobytes()
        with pytest.warns(DamagedIndexWarning, match="does not match the footer"):
            assert pqext.open(with_table(file, fewer, row_groups=count)).num_rows == ROWS


@pytest.mark.spec("extension.jump-table.verified")
def test_verify_reports_an_incorrect_jump_table() -> None:
    file = written(SMALL)
    assert pqext.verify(file).ok
    wrong = swap_names(file)
    assert pqext.open(wrong).schema.root.child("text") is None  # it is looked up, and not there
    report = pqext.verify(wrong, columns=["text"])
    assert [fault.rule for fault in report.faults] == ["extension.jump-table.verified"]
    footer = bytearray(footer_of(file))
    footer[-29] ^= 1  # the checksum of the frame
    faults = pqext.verify(with_footer(file, bytes(footer))).faults
    assert [fault.rule for fault in faults] == ["extension.jump-table.verified"]
    for at in range(1, 17):
        footer = bytearray(footer_of(file))
        footer[-1 - at] ^= 0x81  # the UUID, by which readers know the table
        faults = pqext.verify(with_footer(file, bytes(footer))).faults
        assert [(fault.rule, "UUID" in fault.message) for fault in faults] == [("extension.jump-table.verified", True)]


@pytest.mark.spec("extension.jump-table.unchanged")
def test_footer_is_rewritten_with_and_without_a_jump_table(tmp_path: Any) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(SMALL, path, row_group_size=5)
    before = path.read_bytes()
    pqext.rewrite_footer(path, lambda metadata: None, footer="thrift+index")
    slowly.check(footer_of(path.read_bytes()))
    assert is_indexed(pqext.open(path.read_bytes()))
    assert pqext.read_table(path).equals(SMALL)
    assert pq.read_table(path).equals(SMALL)
    pqext.rewrite_footer(path, lambda metadata: None)
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="footer must be"):
        pqext.rewrite_footer(path, lambda metadata: None, footer="flat")  # type: ignore[arg-type]


@pytest.mark.spec("extension.jump-table.checked")
def test_incorrect_jump_tables_return_values_or_typed_errors() -> None:
    file = written(SMALL, row_group_rows=2)
    root, thrift, sections, _ = slowly.split(footer_of(file))
    generator = np.random.default_rng(5)
    pool = [0, 1, 2, len(thrift), len(thrift) + 1, (1 << 31) - 1, (1 << 32) - 1]
    seen: set[type] = set()
    for step in range(90):
        numbers = np.frombuffer(sections, "<u4").copy()
        told = dict(root)
        value = int(generator.choice(pool)) if step % 2 else int(generator.integers(0, len(thrift)))
        if step % 3:
            numbers[generator.integers(len(numbers))] = value
        else:
            told[str(generator.choice(list(root)[1:-1]))] = value
        size = told["block_bytes"] or 1
        parts = (thrift, numbers.tobytes())
        crcs = [zlib.crc32(part[at : at + size]) for part in parts for at in range(0, len(part), size)]
        listed = np.array(crcs, "<u4").tobytes()
        table = parts[1] + listed + jump_table.Root(**{**told, "crc_list": zlib.crc32(listed)}).encode()
        changed = with_footer(file, append_extension(thrift + b"\0", frame(table, JUMP_TABLE)))
        for name in ("number", "deep", "none"):
            seen.add(type(outcome(changed, name)))
    assert tuple in seen
    assert all(kind is tuple or issubclass(kind, (ParquetError, KeyError)) for kind in seen)
