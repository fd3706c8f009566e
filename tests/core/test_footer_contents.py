"""``read_schema`` and ``read_metadata`` return what pyarrow reads from the same footer, for every kind of source."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.test_encryption_files import DECRYPTION, TABLE, encrypted

import pqext
from pqext import geo, variant
from pqext.core.base.errors import EncryptionError
from pqext.core.footer.writing import rewrite_footer

PLAIN = pa.table(
    {
        "id": pa.array(range(10), pa.int32()),
        "place": pa.array([f"place {number}" for number in range(10)]),
        "at": pa.array(range(10), pa.timestamp("us", "UTC")),
        "user": [{"name": "Ann", "tags": ["a", "b"]}] * 10,
    }
).replace_schema_metadata({"writer": "a test"})


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("footers") / "plain.parquet")
    pqext.write_table(PLAIN, path, row_group_rows=4)
    return path


def check_metadata(found: Any, expected: Any) -> None:
    """Compare the metadata of pqext with those of pyarrow."""
    assert found.num_rows == expected.num_rows
    assert found.created_by == expected.created_by
    assert len(found.row_groups) == expected.num_row_groups
    for index, group in enumerate(found.row_groups):
        peer = expected.row_group(index)
        assert group.num_rows == peer.num_rows
        columns = [peer.column(place) for place in range(peer.num_columns)]
        for column, expected_column in zip(group.columns, columns, strict=True):
            assert ".".join(column.meta_data.path_in_schema) == expected_column.path_in_schema
            assert column.meta_data.total_compressed_size == expected_column.total_compressed_size


def test_schema_and_metadata_of_a_path_match_pyarrow(plain: str) -> None:
    assert pqext.read_schema(plain).equals(pq.read_schema(plain), check_metadata=True)
    check_metadata(pqext.read_metadata(plain), pq.read_metadata(plain))


@pytest.mark.parametrize("footer", ["thrift", "thrift+index", "thrift+flatbuffers"])
def test_metadata_outlives_the_file_in_every_footer_format(tmp_path: Path, footer: Any) -> None:
    path = tmp_path / "file.parquet"
    pqext.write_table(PLAIN, path, row_group_rows=4, footer=footer)
    expected = pq.read_metadata(path)
    found = pqext.read_metadata(path)
    path.unlink()
    check_metadata(found, expected)
    assert [element.name for element in found.schema][1:4] == ["id", "place", "at"]


def test_metadata_of_a_flatbuffers_footer_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pqext.write_table(PLAIN, path, row_group_rows=4, footer="flatbuffers")
    found = pqext.read_metadata(path)
    path.unlink()
    assert (found.num_rows, [group.num_rows for group in found.row_groups]) == (10, [4, 4, 2])
    assert [column.meta_data.path_in_schema[0] for column in found.row_groups[2].columns][:3] == ["id", "place", "at"]


def test_accepted_sources_are_those_of_open(plain: str) -> None:
    data = Path(plain).read_bytes()
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/footers/plain.parquet", data)
    expected = pq.read_schema(plain)
    with io.BytesIO(data) as file:
        assert pqext.read_schema(file) == expected
        assert pqext.read_metadata(file).num_rows == 10
        assert not file.closed
    for source, keywords in (
        (data, {}), (Path(plain), {}), ("memory://footers/plain.parquet", {}),
        ("/footers/plain.parquet", {"filesystem": memory}),
    ):
        assert pqext.read_schema(source, **keywords) == expected
        assert pqext.read_metadata(source, **keywords).num_rows == 10
    memory.rm("/footers", recursive=True)


def test_schema_has_the_types_of_tables(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    table = pa.table(
        {"event": variant.parse_json(['{"n": 1}', '{"n": "x"}']), "at": geo.from_points([2.5, 2.4], [48.5, 48.6])}
    )
    pqext.write_table(table, path, geometry={"at": {"crs": "EPSG:4326"}}, shredding={"event": "n BIGINT"})
    for options in ({}, {"shredded": True}):
        schema = pqext.read_schema(path, **options)
        assert schema.equals(pqext.read_table(path, **options).schema, check_metadata=True)
    assert pqext.read_schema(path).field("event").metadata[b"ARROW:extension:name"] == b"arrow.parquet.variant"
    assert pqext.read_schema(path).field("at").metadata[b"ARROW:extension:name"] == b"geoarrow.wkb"
    assert "typed_value" in str(pqext.read_schema(path, pqext.ReadOptions(shredded=True)).field("event").type)


def test_encrypted_footers_require_keys() -> None:
    data = encrypted()
    assert pqext.read_schema(data, decryption=DECRYPTION).names == TABLE.schema.names
    assert pqext.read_metadata(data, decryption=DECRYPTION).num_rows == len(TABLE)
    for read in (pqext.read_schema, pqext.read_metadata):
        with pytest.raises(EncryptionError):
            read(data)


def test_errors_match_those_of_open(tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("no Parquet")
    for read in (pqext.read_schema, pqext.read_metadata):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "missing.parquet")
        with pytest.raises(pqext.CorruptFileError):
            read(tmp_path / "text.parquet")
        with pytest.raises(TypeError, match="on_corrupt"):
            read(tmp_path / "text.parquet", on_corupt="skip")


def test_rewriting_a_footer_copies_the_data_in_few_pieces(tmp_path: Path) -> None:
    class Counted(io.BytesIO):
        def __init__(self) -> None:
            super().__init__()
            self.sizes: list[int] = []

        def write(self, data: Any) -> int:
            self.sizes.append(len(data))
            return super().write(data)

    path, out = tmp_path / "plain.parquet", Counted()
    table = pa.table({"a": range(400_000)})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    rewrite_footer(path, None, out)
    assert pq.read_table(io.BytesIO(out.getvalue())) == table
    assert sum(out.sizes) > 3_200_000
    assert len(out.sizes) < 10
