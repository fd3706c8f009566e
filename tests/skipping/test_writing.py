"""Parts of a store written: as another reader of the written rules sees them, plaintext and encrypted."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import EncryptionError, UnsupportedError
from pqext.encryption import (
    CryptoFactory,
    EncryptionConfiguration,
    FileEncryption,
    KmsClient,
    KmsConnectionConfig,
)
from pqext.skipping.format.metadata import IndexColumn, StoreEncryption, StoreMetadata
from pqext.skipping.format.parts import read_parts, write_part
from pqext.skipping.format.spark_bloom import build_bloom
from reference import skipping_store

KEYS = {"k1": b"0123456789012345", "k2": b"5432109876543210"}
PARAMS = {"io.xskipper.index.bloom.fpp": "0.1", "io.xskipper.index.bloom.ndv": "10"}


def store(keys: tuple[str | None, str | None] = (None, None), *, plaintext: bool = False) -> StoreMetadata:
    """A store of three indexes, two of which may have keys."""
    indexes = (
        IndexColumn.create("minmax", ["N.temp"], key=keys[0]),
        IndexColumn.create("bloomfilter", ["city"], PARAMS, keys[1]),
        IndexColumn.create("valuelist", ["city"]),
    )  # fmt: skip
    encryption = StoreEncryption("", "k1", plaintext) if keys != (None, None) else None
    return StoreMetadata(4, "/tables/weather", encryption, ("Dt",), indexes)


def rows(metadata: StoreMetadata) -> pa.Table:
    bounds = pa.struct([pa.field("min", pa.int64(), nullable=False), pa.field("max", pa.int64(), nullable=False)])
    minmax, bloom, values = (one.name for one in metadata.indexes)
    return pa.table({
        values: pa.array([["Haifa", "Jaffa"], []], pa.large_list(pa.large_string())),
        bloom: pa.array([build_bloom(pa.array(["Haifa", "Jaffa"]), 10, 0.1), None], pa.binary()),
        "virtual_Dt": pa.array([datetime.date(1500, 1, 1), None]),
        minmax: pa.array([{"min": 1, "max": 2}, None], bounds),
        "obj_name": pa.array(["/tables/weather/a#b.parquet#1", "/tables/weather/c.parquet#2"]),
    })  # fmt: skip


@pytest.mark.spec(
    "store.index.nullable", "store.row", "store.minmax", "store.valuelist", "store.bloomfilter",
    "store.partition-columns", "store.name.lengths", "store.encryption.none", "store.files",
)  # fmt: skip
@pytest.mark.parametrize("compression", ["snappy", "zstd"])
def test_part_is_readable_by_the_specification(tmp_path: Path, compression: Any) -> None:
    metadata, path = store(), tmp_path / "new" / "part-0.parquet"
    table = rows(metadata)
    assert write_part(path, table, metadata, compression=compression) == metadata
    told = skipping_store.read(path.parent)
    assert (told.version, told.table, told.partitions, told.encryption) == (4, "/tables/weather", ["Dt"], {})
    assert told.indexes == {
        skipping_store.column_name(index["cols"], index["name"], 4): index
        for index in (
            {"cols": ["N.temp"], "name": "minmax"}, {"cols": ["city"], "name": "bloomfilter", "params": PARAMS},
            {"cols": ["city"], "name": "valuelist"},
        )
    }  # fmt: skip
    assert told.rows == {row.pop("obj_name"): row for row in table.to_pylist()}
    cell = next(iter(told.rows.values()))["city_bloomfilter_4"]
    asked = skipping_store.Bloom.parse(skipping_store.bloom_payload(cell))
    assert [asked.may_contain(one) for one in ("Haifa", "Jaffa", "Lod", 7)] == [True, True, False, False]
    file = pq.ParquetFile(path)
    assert file.schema_arrow.names == ["obj_name", "virtual_Dt", *(one.name for one in metadata.indexes)]
    assert [one.name for one in file.schema_arrow.field(2).type] == ["min", "max"]
    assert file.metadata.row_group(0).column(0).compression == compression.upper()
    assert [file.schema.column(at).max_definition_level for at in range(6)] == [1, 1, 2, 2, 1, 3]
    assert {b"org.apache.spark.version", skipping_store.SCHEMA} == set(file.metadata.metadata)
    found = read_parts([path])
    assert found.metadata == metadata
    assert found.table.to_pylist() == file.read().to_pylist()


@pytest.mark.spec(
    "store.encryption.index-columns", "store.encryption.footer-key", "store.encryption.labels",
    "store.encryption.consistent", "store.encryption.plaintext-footer", "store.encryption.index-key",
)  # fmt: skip
@pytest.mark.parametrize("plaintext", [True, False])
def test_encrypted_part_is_encrypted_as_its_metadata_states(tmp_path: Path, plaintext: bool) -> None:
    metadata, path = store(("k1", "k2"), plaintext=plaintext), tmp_path / "part.parquet"
    table = rows(metadata)
    written = write_part(path, table, metadata, KEYS)
    minmax, bloom, values = (one.name for one in metadata.indexes)
    listed = f"k1:{minmax}.min,{minmax}.max,obj_name,virtual_Dt;k2:{bloom}"
    assert written.encryption == StoreEncryption(listed, "k1", plaintext)
    found = read_parts([path], decryption=KEYS)
    assert (found.metadata, found.table.num_columns) == (written, 5)
    about = found.metadata.encryption
    assert about is not None
    raw = path.read_bytes()
    assert not any(key in raw for key in KEYS.values())
    assert raw[-4:] == (b"PAR1" if plaintext else b"PARE")
    lacking = {"k1": KEYS["k1"]}
    with pytest.raises(EncryptionError, match=bloom):
        read_parts([path], decryption=lacking)
    assert read_parts([path], [minmax, values], lacking).table.column_names == ["obj_name", minmax, values]
    with pytest.raises(EncryptionError, match="key was not passed") as refused:
        read_parts([path], [values])
    assert not any(key in str(refused.value).encode() for key in KEYS.values())
    if plaintext:
        footer = pq.read_metadata(path)
        told = json.loads(footer.metadata[skipping_store.SCHEMA])["fields"]
        assert told[0]["metadata"]["encryption"]["encryption.column.keys"] == listed
        assert [one["metadata"].get("index", {}).get("key_metadata") for one in told] == [None, None, "k1", "k2", None]
        assert pq.read_table(path, columns=[values]).column(values).to_pylist() == [["Haifa", "Jaffa"], []]
        for column in ("obj_name", "virtual_Dt", minmax, bloom):
            with pytest.raises(OSError, match=r"(?i)encrypt|decrypt"):
                pq.read_table(path, columns=[column])


class Kms(KmsClient):
    """Master keys by their names; wrapping is no secret here."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return f"{master_key_identifier}/{key_bytes.hex()}"

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        assert wrapped_key.startswith(f"{master_key_identifier}/")
        return bytes.fromhex(wrapped_key.partition("/")[2])


@pytest.mark.spec("store.encryption.column-keys")
def test_labels_may_be_master_keys_of_a_kms(tmp_path: Path) -> None:
    factory, connection = CryptoFactory(lambda _: Kms()), KmsConnectionConfig()

    def keys(about: StoreEncryption) -> FileEncryption:
        wanted = EncryptionConfiguration(
            about.footer_key, column_keys=about.labels(), plaintext_footer=about.plaintext_footer
        )
        return factory.file_encryption_properties(connection, wanted)

    metadata, path = store(("k2", "k3")), tmp_path / "part.parquet"
    written = write_part(path, rows(metadata), metadata, keys)
    found = read_parts([path], decryption=factory.file_decryption_properties(connection))
    assert (found.metadata, found.table.num_rows) == (written, 2)


def test_part_that_violates_the_specification_is_not_written(tmp_path: Path) -> None:
    metadata, path = store(), tmp_path / "part.parquet"
    table, name = rows(metadata), metadata.indexes[0].name

    def changed(**changes: Any) -> StoreMetadata:
        told = {field: getattr(metadata, field) for field in StoreMetadata.__dataclass_fields__}
        return StoreMetadata(**{**told, **changes})

    twice = changed(indexes=(*metadata.indexes, metadata.indexes[0]))
    for about, offered, message in (
        (changed(version=3), table, "must have version 4, not 3"),
        (changed(version=None), table, "must have version 4, not None"),
        (changed(table_identifier=None), table, "lacks the table_identifier"),
        (twice, table, "have the same store column"),
        (changed(partitions=("Dt", "dt")), table, "would have the same store column"),
        (metadata, table.drop_columns([name]), "the metadata describes"),
        (metadata, table.append_column("more", pa.nulls(2)), "the metadata describes"),
        (metadata, table.set_column(4, "obj_name", pa.array(["a#1", None])), "'obj_name' must not be null"),
        (changed(encryption=StoreEncryption("", "k1")), table, "no index has a key"),
    ):
        with pytest.raises(ValueError, match=message):
            write_part(path, offered, about)
    with pytest.raises(UnsupportedError, match=r"Spark has no equivalent of .* \[column n\$#\$temp_minmax_8\]"):
        write_part(path, table.set_column(3, name, pa.array([1, 2], pa.duration("s"))), metadata)
    with pytest.raises(ValueError, match="encryption= is missing"):
        write_part(path, table, store(("k1", None)))
    with pytest.raises(ValueError, match="no key for the labels k3"):
        write_part(path, table, store(("k1", "k3")), KEYS)
    assert not path.exists()


SCALARS = st.sampled_from([
    (pa.int32(), st.integers(-(1 << 31), (1 << 31) - 1)), (pa.float64(), st.floats(allow_nan=False)),
    (pa.string(), st.text()), (pa.date32(), st.dates()), (pa.bool_(), st.booleans()), (pa.binary(), st.binary()),
    (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(datetime.UTC))),
    (pa.decimal128(9, 2), st.decimals(-9999, 9999, places=2)),
])  # fmt: skip


@given(data=st.data())
def test_cells_of_every_type_round_trip(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    kind, values = data.draw(SCALARS)
    count = data.draw(st.integers(0, 5))
    drawn = [[data.draw(st.none() | values) for _ in range(2)] for _ in range(count)]
    metadata = StoreMetadata(
        4, "t", None, ("p",), (IndexColumn.create("minmax", ["a"]), IndexColumn.create("valuelist", ["a"]))
    )
    table = pa.table({
        "obj_name": pa.array([f"o#{at}" for at in range(count)], pa.string()),
        "virtual_p": pa.array([pair[0] for pair in drawn], kind),
        "a_minmax_1": pa.array(
            [{"min": pair[0], "max": pair[1]} for pair in drawn], pa.struct({"min": kind, "max": kind})
        ),
        "a_valuelist_1": pa.array([[one for one in pair if one is not None] for pair in drawn], pa.list_(kind)),
    })  # fmt: skip
    path = tmp_path_factory.mktemp("part") / "part.parquet"
    write_part(path, table, metadata)
    assert read_parts([path]).table.to_pylist() == table.to_pylist()
    told = skipping_store.read(path.parent)
    assert list(told.rows) == table.column("obj_name").to_pylist()
    assert told.rows == {row.pop("obj_name"): row for row in table.to_pylist()}
