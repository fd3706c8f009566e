"""What belongs to an encrypted column is hidden with it: indexes, Bloom filters, extensions, statistics of any kind."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from core.test_encryption_files import DECRYPTION, FOOTER_KEY, KEYS, TABLE, encrypted, read, written

import pqext
from pqext.core.base.errors import EncryptionError
from pqext.core.encryption.reading import MissingKeyError
from pqext.core.format.extension.structure import extensions
from pqext.encryption import FileDecryption, FileEncryption
from reference import modular_encryption as reference


@pytest.mark.spec("encryption.modules.all", "encryption.aad.module-types")
@pytest.mark.parametrize("place", ["file", "row_group"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_indexes_and_bloom_filters_of_encrypted_columns_are_encrypted(plaintext_footer: bool, place: str) -> None:
    encryption = FileEncryption(FOOTER_KEY, column_keys=KEYS, plaintext_footer=plaintext_footer)
    data = written(
        encryption=encryption, row_group_rows=60, page_rows=20, bloom_filters={"a": True, "b": True},
        bloom_filter_place=place,
    )
    kinds = {(one.kind, one.column) for one in reference.modules(data, FOOTER_KEY, KEYS)}
    assert {kind for kind, column in kinds if column == 0} == set(range(1, 10))
    assert {column for _, column in kinds} == {0, 2}
    with pqext.open(data, pqext.ReadOptions(decryption=DECRYPTION)) as file:
        for group in file.row_groups:
            for column in (0, 1):
                chunk = group.chunk(column)
                assert chunk.column_index is not None
                assert chunk.offset_index is not None
                assert len(chunk.offset_index.page_locations) == len(chunk.page_bounds())
                assert chunk.bloom_filter is not None
            assert group.chunk(0).bloom_filter.might_contain(5)
            assert not group.chunk(0).bloom_filter.might_contain(6)
    with pqext.open(data, pqext.ReadOptions(decryption=FileDecryption(FOOTER_KEY))) as file:
        assert file.row_groups[0].chunk(1).column_index is not None
        with pytest.raises(MissingKeyError):
            _ = file.row_groups[0].chunk(0).column_index


@pytest.mark.spec("encryption.metadata.extensions")
def test_extensions_of_encrypted_columns_are_not_plaintext() -> None:
    keys = FileEncryption(FOOTER_KEY, column_keys=KEYS, plaintext_footer=True)
    data = written(encryption=keys, extensions={"a": b"confidential", "b": b"everybody's", "file": b"the file's"})
    assert b"confidential" not in data
    assert b"everybody's" in data
    with pqext.open(data, pqext.ReadOptions(decryption=DECRYPTION)) as file:
        assert extensions(file.row_groups[0].chunk(0).metadata) == b"confidential"
        assert extensions(file.row_groups[0].chunk(1).metadata) == b"everybody's"
    for place in ("row_groups[0].columns[0]", "schema[1]"):
        with pytest.raises(EncryptionError, match="which a plaintext footer would"):
            written(encryption=keys, extensions={place: b"confidential"})
        hidden = written(
            encryption=FileEncryption(FOOTER_KEY, column_keys=KEYS), extensions={place: b"confidential"}
        )
        assert b"confidential" not in hidden
        assert read(hidden).equals(TABLE)
    written(encryption=keys, extensions={"row_groups[0].columns[1]": b"x", "schema[2]": b"x"})


def test_file_with_a_plaintext_footer_is_inspected_without_keys() -> None:
    data = encrypted(column_keys=KEYS, plaintext_footer=True)
    columns = {column.path[0]: column for column in pqext.inspect(data).row_groups[0].columns}
    assert [columns[name].encrypted for name in "abc"] == [True, False, True]
    assert columns["a"].minimum is None
    assert columns["a"].num_values == 60
    assert columns["b"].minimum is not None
    known = {column.path[0]: column for column in pqext.inspect(data, decryption=DECRYPTION).row_groups[0].columns}
    assert known["a"].minimum is not None
    assert known["a"].encrypted
    with pytest.raises(EncryptionError):
        pqext.inspect(encrypted())
    hidden = pqext.inspect(encrypted(column_keys=KEYS), decryption=FileDecryption(FOOTER_KEY))
    assert [column.encrypted for column in hidden.row_groups[0].columns] == [True, False, True]
    assert hidden.row_groups[0].columns[0].num_values == 0


KEYS_OF_G = {"g": KEYS["a"]}


@pytest.mark.spec("encryption.metadata.redacted")
def test_bounding_boxes_of_encrypted_columns_are_not_plaintext() -> None:
    wkb = [struct.pack("<BIdd", 1, 1, 4.25 + n, 52.5) for n in range(5)]
    field = pa.field("g", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})
    table = pa.table([pa.array(wkb)], schema=pa.schema([field]))
    data = written(table, encryption=FileEncryption(FOOTER_KEY, column_keys=KEYS_OF_G, plaintext_footer=True))
    with pqext.open(data) as file:
        assert file.row_groups[0].chunk(0).geospatial_statistics is None
    with pqext.open(data, pqext.ReadOptions(decryption=FileDecryption(column_keys=KEYS_OF_G))) as file:
        found = file.row_groups[0].chunk(0).geospatial_statistics
        assert found is not None
        assert (found.bbox.xmin, found.bbox.xmax) == (4.25, 8.25)
    assert struct.pack("<d", 8.25) not in data


def test_shredded_variant_is_encrypted_with_the_key_of_its_group() -> None:
    values = pqext.variant.parse_json(pa.array(['{"user": "somebody", "n": 1}', '{"n": "hidden text"}', None]))
    table = pa.table({"v": values, "plain": [1, 2, 3]})
    encryption = FileEncryption(FOOTER_KEY, column_keys={"v": KEYS["a"]}, plaintext_footer=True)
    data = written(table, encryption=encryption, shredding={"v": "n BIGINT"}, compression="uncompressed")
    assert b"somebody" in written(table, shredding={"v": "n BIGINT"}, compression="uncompressed")
    assert b"somebody" not in data
    assert b"hidden text" not in data
    assert read(data, None, columns=["plain"])["plain"].to_pylist() == [1, 2, 3]
    back = read(data, FileDecryption(FOOTER_KEY, {"v": KEYS["a"]}))
    assert pqext.variant.to_json(back["v"].combine_chunks()).to_pylist() == [
        '{"n":1,"user":"somebody"}', '{"n":"hidden text"}', None,
    ]


def test_dataset_files_are_decrypted_with_their_own_prefix(tmp_path: Path) -> None:
    for n in range(3):
        encryption = FileEncryption(
            FOOTER_KEY, column_keys={"a": KEYS["a"]}, aad_prefix=f"t.part{n}", store_aad_prefix=False
        )
        pqext.write_table(pa.table({"a": [n, n + 1], "s": ["x", str(n)]}), tmp_path / f"part{n}", encryption=encryption)

    def reading(**keys: Any) -> FileDecryption:
        return FileDecryption(FOOTER_KEY, aad_prefix=lambda path: f"t.{Path(path or '').name}", **keys)

    files = [str(tmp_path / f"part{n}") for n in range(3)]
    everything = reading(column_keys={"a": KEYS["a"]})
    assert pqext.read_table(files, decryption=everything)["a"].to_pylist() == [0, 1, 1, 2, 2, 3]
    assert pqext.read_table(files, filter=pqext.col("a") > 2, decryption=everything)["s"].to_pylist() == ["2"]
    texts = pqext.read_table(files, columns=["s"], decryption=reading())
    assert texts["s"].to_pylist() == ["x", "0", "x", "1", "x", "2"]
    with pytest.raises(EncryptionError, match="column_keys") as caught:
        pqext.read_table(files, columns=["s"], filter=pqext.col("a") > 2, decryption=reading())
    assert caught.value.column == "a"
    with pytest.raises(EncryptionError):
        pqext.read_table(list(reversed(files)), decryption=FileDecryption(FOOTER_KEY, aad_prefix="t.part0"))


@pytest.mark.parametrize("table", [pa.table({"a": pa.array([], pa.int32())}), pa.table({})])
def test_files_without_rows_or_columns_can_be_encrypted(table: pa.Table) -> None:
    assert read(written(table, encryption=FileEncryption(FOOTER_KEY))).equals(table)


def test_rows_of_an_encrypted_list_column_are_read_through_its_offset_index() -> None:
    table = pa.table({"l": [[i] * (i % 4) for i in range(900)]})
    data = written(table, encryption=FileEncryption(FOOTER_KEY), page_rows=100)
    assert read(data, rows={0: [range(150, 750)]}).equals(table.slice(150, 600))
