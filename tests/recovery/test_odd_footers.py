"""Footers with a flipped bit that pqext reads in spite of it and Arrow does not: what is recovered, both read."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recovery.cut_files import by_pqext, by_pyarrow, footer_of, recovered

import pqext
from pqext.core.base.errors import CorruptDataWarning
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import FieldRepetitionType, FileMetaData, IntType, LogicalType, StringType

TABLE = pa.table({
    "n": pa.array([1, None, 3] * 10, pa.int32()),
    "list": pa.array([[1, None], [], None] * 10, pa.list_(pa.int32())),
    "struct": pa.array([{"x": 1}, {"x": None}, None] * 10, pa.struct([("x", pa.int32())])),
})
NUMBER, LIST, STRUCT = 1, 2, 5


def annotated(element: int, **fields: object) -> Callable[[FileMetaData], None]:
    def change(metadata: FileMetaData) -> None:
        for name, value in fields.items():
            setattr(metadata.schema[element], name, value)

    return change


def changed(data: bytes, change: Callable[[FileMetaData], None]) -> bytes:
    out = io.BytesIO()
    rewrite_footer(io.BytesIO(data), change, out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (annotated(NUMBER, converted_type=1349), "'n' has the converted type 1349"),
        (annotated(NUMBER, logicalType=LogicalType(INTEGER=IntType(bitWidth=33, isSigned=True))), "type of 33 bits"),
        (annotated(LIST, logicalType=LogicalType(unknown=((0, 2, b""),))), "logical type that is not a str"),
        (annotated(STRUCT, logicalType=LogicalType(STRING=StringType())), "has the logical type STRING, which"),
    ],
)
@pytest.mark.spec("recovery.annotations")
def test_invalid_annotations_are_reported_and_dropped(
    change: Callable[[FileMetaData], None], told: str
) -> None:
    data = changed(by_pyarrow(TABLE, store_schema=False), change)
    with pytest.raises((OSError, ValueError)):
        pq.read_table(io.BytesIO(data))
    assert told in str(pqext.verify(data))
    for damaged in (data, data[:-8]):
        report, found = recovered(damaged)
        assert found is not None, report
        assert found.num_rows == 30
        assert found["struct"] == TABLE["struct"]
        assert any(told in note and note.endswith("which is ignored") for note in report.notes)


@pytest.mark.spec("recovery.annotations")
def test_logical_types_of_later_versions_are_preserved() -> None:
    later = LogicalType(unknown=((30, 12, b"\x00"),))
    data = changed(by_pyarrow(TABLE, store_schema=False), annotated(NUMBER, logicalType=later))
    made = io.BytesIO()
    assert not pqext.recover(data[:-8], made).notes
    with pqext.open(made.getvalue()) as file:
        assert file.metadata.schema[NUMBER].logicalType == later


@pytest.mark.parametrize("stored", [None, "", "AAAA", "no base64", "/////w=="])
@pytest.mark.spec("recovery.annotations")
def test_unreadable_arrow_schema_is_dropped(stored: str | None) -> None:
    def change(metadata: FileMetaData) -> None:
        (pair,) = metadata.key_value_metadata or ()
        assert pair.key == "ARROW:schema"
        pair.value = stored

    data = changed(by_pyarrow(TABLE), change)
    assert "the metadata entry ARROW:schema cannot be read" in str(pqext.verify(data))
    _, found = recovered(data[:-8])
    assert found == TABLE


@pytest.mark.parametrize("codec", [3, 9])
@pytest.mark.spec("recovery.codec")
def test_unsupported_codec_of_uncompressed_pages_is_ignored(codec: int) -> None:
    table = pa.table({"n": pa.array([7, 8], pa.int64())})
    data = by_pqext(table, page_version=2, compression="zstd", dictionary=False)

    def change(metadata: FileMetaData) -> None:
        about = metadata.row_groups[0].columns[0].meta_data
        assert about is not None
        about.codec = codec

    with pytest.raises(OSError, match=r"codec|LZO"):
        pq.read_table(io.BytesIO(changed(data, change)))
    _, found = recovered(changed(data, change)[:-8])
    assert found == table


@pytest.mark.parametrize("write_statistics", [False, True])
@pytest.mark.spec("recovery.types")
def test_values_of_a_column_changed_to_required_are_not_recovered(write_statistics: bool) -> None:
    """The levels in its pages become values, and the last values are left over."""
    table = pa.table({"n": range(300), "f": [0.5] * 300})
    data = by_pyarrow(
        table, use_dictionary=False, row_group_size=100, write_page_checksum=True, write_statistics=write_statistics
    )
    report, found = recovered(data)
    assert report.is_certified
    assert found == table
    flipped = changed(data, annotated(1, repetition_type=FieldRepetitionType.REQUIRED))
    for metadata in (flipped, changed(flipped, without_size_statistics)):
        report, found = recovered(metadata)
        assert found is None
        assert {(loss.column, loss.rows) for loss in report.losses} == {("n", 100)}
        assert "more bytes than its values need" in report.losses[0].reason
        report, found = recovered(metadata, drop_columns=True)
        assert found == table.select(["f"])
        assert report.is_certified


@pytest.mark.spec("recovery.types")
def test_values_of_a_wrong_length_are_not_certified() -> None:
    table = pa.table({"n": pa.array([row.to_bytes(16) for row in range(300)], pa.binary(16))})
    data = by_pyarrow(table, use_dictionary=False, row_group_size=100, write_statistics=False)
    report, found = recovered(data)
    assert report.is_certified
    assert found == table
    report, found = recovered(changed(data, annotated(1, type_length=8)))
    assert found is not None
    assert [group.assigned for group in report.row_groups] == ["contradicted"] * 3
    assert report.row_groups[2].evidence == "footer, but values of n contradict it"
    assert not report.is_certified
    with pytest.warns(CorruptDataWarning):
        assert not pqext.read_table(changed(data, annotated(1, type_length=8)), on_corrupt="skip").num_rows


def test_recovery_finds_the_rows_of_a_file_with_its_column_indexes_last() -> None:
    """The format does not fix the order of page indexes; pyarrow stores the column indexes first."""
    table = pa.table({"n": range(300)})
    data = by_pyarrow(table, row_group_size=100, write_page_index=True)
    moved = io.BytesIO()

    def swap(metadata: FileMetaData) -> None:
        chunks = [group.columns[0] for group in metadata.row_groups]
        moved.write(data[: chunks[0].column_index_offset])
        for index in ("offset_index", "column_index"):
            for chunk in chunks:
                at = getattr(chunk, f"{index}_offset")
                setattr(chunk, f"{index}_offset", moved.tell())
                moved.write(data[at : at + getattr(chunk, f"{index}_length")])

    footer = changed(data, swap)[footer_of(data) :]
    whole = moved.getvalue() + footer
    assert pq.read_table(io.BytesIO(whole)) == table
    _, found = recovered(whole[:100] + whole[120:])
    assert found == table.slice(100)


def without_size_statistics(metadata: FileMetaData) -> None:
    for group in metadata.row_groups:
        for chunk in group.columns:
            assert chunk.meta_data is not None
            chunk.meta_data.size_statistics = None


@pytest.mark.parametrize("encoding", [4, 32])
@pytest.mark.spec("layout.page-lost")
def test_encoding_counts_missing_from_the_metadata_lose_no_page(encoding: int) -> None:
    table = pa.table({"n": [row * 1000 for row in range(300)]})
    data = by_pyarrow(
        table, dictionary_pagesize_limit=100, data_page_size=100, write_batch_size=20, write_page_checksum=True
    )

    def change(metadata: FileMetaData) -> None:
        about = metadata.row_groups[0].columns[0].meta_data
        assert about is not None
        (plain,) = [one for one in about.encoding_stats or () if one.page_type != 2 and one.encoding == 0]
        plain.encoding = encoding

    odd = changed(data, change)
    assert pqext.read_table(odd, on_corrupt="skip") == table
    report, found = recovered(odd)
    assert found == table
    assert report.is_certified
