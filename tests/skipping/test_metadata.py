"""What parts of a store say of themselves, in the form of each version."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import CorruptFileError, UnsupportedError
from pqext.skipping.format import spark_schema
from pqext.skipping.format.metadata import (
    IndexColumn,
    StoreEncryption,
    StoreMetadata,
    from_spark,
    merge_metadata,
    to_spark,
)
from pqext.skipping.format.spark_schema import SparkField

VERSIONS = [1, 2, 3, 4]
BLOOM = {"io.xskipper.index.bloom.fpp": "0.01", "io.xskipper.index.bloom.ndv": "100000"}
SCHEMA = pa.schema({
    "obj_name": pa.string(), "virtual_dt": pa.date32(), "virtual_year": pa.string(), "city": pa.binary(),
    "temp": pa.struct({"min": pa.int32(), "max": pa.int32()}), "list": pa.list_(pa.string()),
})  # fmt: skip


def described(xskipper: Path, version: int, footer: str) -> tuple[list[Any], StoreMetadata]:
    """The JSON of a published schema, and what is made of it."""
    path = xskipper / f"parquet_version_tests/schema_extraction/version={version}/{footer}/schema.json"
    return json.loads(path.read_text())["fields"], from_spark(spark_schema.parse(path.read_text()))


def store(version: Any = 4, indexes: tuple[dict[str, Any], ...] = (), **about: Any) -> list[SparkField]:
    """A schema of columns ``i0``, ``i1``, ... with the metadata that is given."""
    told = {"version": version, "tableIdentifier": "t", **about}
    told = {key: value for key, value in told.items() if value is not None}
    columns = [SparkField(f"i{at}", "binary", True, {"index": one}) for at, one in enumerate(indexes)]
    return [SparkField("obj_name", "string", False, told), *columns]


MINMAX = {"cols": ["a"], "name": "minmax"}


@pytest.mark.spec(
    "store.index.metadata", "store.index.params", "store.index.params-map", "store.params-prefix",
    "store.version.place", "store.table.place", "store.partition-columns",
    "store.encryption.metadata", "store.encryption.column-keys",
    "store.encryption.footer-key", "store.encryption.plaintext-footer", "store.encryption.index-key",
)  # fmt: skip
@pytest.mark.parametrize("footer", ["encrypted_footer", "plaintext_footer"])
@pytest.mark.parametrize("version", VERSIONS)
def test_published_schemas_are_parsed(xskipper: Path, version: int, footer: str) -> None:
    fields, found = described(xskipper, version, footer)
    assert (found.version, found.table_identifier, found.reason) == (version, "foo/bar", None)
    assert found.partitions == (("dt", "year") if version == 4 else ())
    assert [(one.index, one.columns, one.key, dict(one.params)) for one in found.indexes] == [
        ("minmax", ("temp",), "k1", {}), ("bloomfilter", ("city",), "k1", BLOOM), ("valuelist", ("city",), None, {}),
    ]  # fmt: skip
    assert [one.name for one in found.indexes] == [one["name"] for one in fields if "index" in one["metadata"]]
    listed = fields[0]["metadata"]["encryption"]["encryption.column.keys"]
    assert found.encryption == StoreEncryption(listed, "k1", footer == "plaintext_footer")
    assert found.encryption.labels() == {"k1": listed.removeprefix("k1:").split(",")}


@pytest.mark.spec(
    "store.index.metadata", "store.index.params", "store.index.params-map", "store.params-prefix",
    "store.version.place", "store.table.place", "store.partition-columns",
    "store.encryption.metadata", "store.bloomfilter.type",
)  # fmt: skip
@pytest.mark.parametrize("footer", ["encrypted_footer", "plaintext_footer"])
@pytest.mark.parametrize("version", VERSIONS)
def test_published_schemas_are_reproduced(xskipper: Path, version: int, footer: str) -> None:
    fields, found = described(xskipper, version, footer)
    columns = {
        one.name: SCHEMA.field(kind).type for one, kind in zip(found.indexes, ["temp", "city", "list"], strict=True)
    }
    columns |= {f"virtual_{one}": SCHEMA.field(f"virtual_{one}").type for one in found.partitions}
    written = json.loads(spark_schema.write(to_spark(found, pa.schema(columns))))["fields"]
    assert written.pop(0) == {**fields.pop(0), "nullable": True}  # as Spark notes what it has stored
    assert written == fields


@pytest.mark.spec("store.version.place", "store.version.absent", "store.version.unusable", "store.table.place")
@pytest.mark.parametrize("version", [None, 0])
def test_store_without_a_version_or_of_version_0_is_described_but_unused(version: int | None) -> None:
    old = {"cols": ["a", "b"], "name": "minmax", "tableIdentifier": "data/t", "params": ["spark.ibm.metaindex.x:1:2"]}
    found = from_spark(store(version, (old,), tableIdentifier=None))
    assert (found.version, found.table_identifier, found.is_usable) == (version, "data/t", False)
    assert found.indexes == (IndexColumn("i0", "minmax", ("a", "b"), {"io.xskipper.x": "1:2"}),)
    assert "build it again" in str(found.reason)


@pytest.mark.spec("store.version.unusable")
def test_store_of_a_later_version_is_described_partially() -> None:
    found = from_spark(store(5, (MINMAX, {"columns": "in another form"})))
    assert (found.is_usable, [one.columns for one in found.indexes]) == (False, [("a",)])
    assert "update pqext" in str(found.reason)
    with pytest.raises(ValueError, match="version 5 cannot be written"):
        to_spark(found, SCHEMA)


@pytest.mark.spec("store.version.number")
@pytest.mark.parametrize("version", [-1, 1.0, "4", True, [4], 10**400 * -1])
def test_version_must_be_a_natural_number(version: Any) -> None:
    with pytest.raises(CorruptFileError, match=r"not a natural number \[file part\]"):
        from_spark(store(version), "part")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([], "column 'obj_name' is missing"),
        (store() * 2, "two columns with the same name"),
        ([SparkField("obj_name", "binary", True, {})], "must be strings"),
        (store(tableIdentifier=None), "'tableIdentifier', the table of the store, is missing"),
        (store(tableIdentifier=7), "'tableIdentifier' is not a string"),
        (store(4, ("minmax",)), "'index' is not an object"),  # type: ignore[arg-type]
        (store(4, ({"cols": [], "name": "minmax"},)), "'cols' is not a list of columns"),
        (store(4, ({"cols": [1], "name": "minmax"},)), "'cols' is not a list of columns"),
        (store(4, ({"cols": ["a"]},)), "'name' is not a string"),
        (store(4, ({**MINMAX, "key_metadata": None},)), "'key_metadata' is not a string"),
        (store(4, ({**MINMAX, "params": ["a:b"]},)), "'params' is not an object"),
        (store(4, ({**MINMAX, "params": {"a": 1}},)), "'a' is not a string"),
        (store(2, ({**MINMAX, "params": {"a": "1"}},)), "not a list of strings 'key:value'"),
        (store(1, ({**MINMAX, "params": ["a"]},)), "not a list of strings 'key:value'"),
        (store(encryption=[]), "'encryption' is not an object"),
        (store(encryption={"encryption.column.keys": "k:a"}), "'encryption.footer.key' is not a string"),
        (store(encryption={"encryption.footer.key": "k"}), "'encryption.column.keys' is not a string"),
        (store(encryption={"encryption.column.keys": "k", "encryption.footer.key": "k"}), "'label:column,column'"),
        (
            store(encryption={
                "encryption.column.keys": "k:a", "encryption.footer.key": "k", "encryption.plaintext.footer": "1"
            }),
            "neither 'true' nor 'false'",
        ),
        (
            store(0, ({**MINMAX, "tableIdentifier": "a"}, {**MINMAX, "tableIdentifier": "b"})),
            r"several tables: \['a', 'b'\]",
        ),
    ],
)  # fmt: skip
def test_metadata_of_another_format_is_rejected_with_the_file(fields: list[SparkField], message: str) -> None:
    with pytest.raises(CorruptFileError, match=message) as refused:
        from_spark(fields, "store/part.parquet")
    assert refused.value.path == "store/part.parquet"


@pytest.mark.spec("store.encryption.consistent")
def test_key_listed_for_other_columns_is_rejected() -> None:
    keys = {"encryption.column.keys": "k1:i0.min,i0.max,obj_name;k2:i1", "encryption.footer.key": "k1"}
    agreeing = ({**MINMAX, "key_metadata": "k1"}, {**MINMAX, "key_metadata": "k2"})
    assert [one.key for one in from_spark(store(4, agreeing, encryption=keys)).indexes] == ["k1", "k2"]
    for wrong in ("k2", "k3"):
        with pytest.raises(CorruptFileError, match="does not assign"):
            from_spark(store(4, ({**MINMAX, "key_metadata": wrong},), encryption=keys))


@pytest.mark.spec("store.encryption.index-columns", "store.encryption.consistent", "store.encryption.none")
def test_key_list_follows_from_the_index_keys() -> None:
    indexes = (
        IndexColumn("temp", "minmax", ("t",), key="k2"), IndexColumn("city", "bloomfilter", ("c",)),
        IndexColumn("list", "valuelist", ("c",), key="k1"),
    )  # fmt: skip
    made = StoreMetadata(4, "t", StoreEncryption("", "k1", True), ("dt",), indexes).with_key_list(SCHEMA)
    assert made.encryption == StoreEncryption(
        "k2:temp.min,temp.max;k1:list.list.element,obj_name,virtual_dt", "k1", True
    )
    assert from_spark(to_spark(made, SCHEMA)) == made
    plain = StoreMetadata(4, "t", None, (), indexes[1:2])
    assert plain.with_key_list(SCHEMA) is plain
    assert "encryption" not in to_spark(plain, SCHEMA)[0].metadata
    with pytest.raises(ValueError, match="'temp' has a key, but the store has no footer key"):
        StoreMetadata(4, "t", None, (), indexes).with_key_list(SCHEMA)
    with pytest.raises(ValueError, match="no index has a key"):
        StoreMetadata(4, "t", StoreEncryption("", "k1"), (), indexes[1:2]).with_key_list(SCHEMA)
    with pytest.raises(ValueError, match="'k:1' cannot be in a list of column keys"):
        StoreMetadata(4, "t", StoreEncryption("", "k:1"), (), indexes).with_key_list(SCHEMA)


def test_parts_with_different_indexes_and_partitions_form_one_store() -> None:
    one = StoreMetadata(
        4, "t", StoreEncryption("k1:i0,obj_name", "k1"), ("a",), (IndexColumn("i0", "x", ("c",), {}, "k1"),)
    )
    other = StoreMetadata(
        4, "t", StoreEncryption("k1:i1,obj_name;k2:i2", "k1"), ("b",), (IndexColumn("i1", "x", ("d",)),)
    )
    whole = merge_metadata([("p", one), ("q", StoreMetadata(4, "t")), ("r", other)])
    assert whole.partitions == ("a", "b")
    assert whole.indexes == one.indexes + other.indexes
    assert whole.encryption == StoreEncryption("k1:i0,obj_name,i1;k2:i2", "k1")
    assert merge_metadata([("p", one)]) == one


@pytest.mark.spec("store.parts.agree")
@pytest.mark.parametrize(
    ("other", "message"),
    [
        (StoreMetadata(3, "t"), "version 4 in p, but 3 in this part"),
        (StoreMetadata(None, "t"), "version 4 in p, but None in this part"),
        (StoreMetadata(4, "u"), "table 't' in p, but 'u' in this part"),
        (StoreMetadata(4, "t", None, (), (IndexColumn("i", "minmax", ("b",)),)), "minmax of a with no key' in p"),
        (StoreMetadata(4, "t", None, (), (IndexColumn("i", "minmax", ("a",), {}, "k"),)), "with no key' in p"),
        (StoreMetadata(4, "t", StoreEncryption("", "other")), "footer key 'k' in p, but 'other' in this part"),
        (StoreMetadata(4, "t", StoreEncryption("", "k", True)), "plaintext footer False in p, but True in this part"),
    ],
)
def test_contradicting_parts_are_rejected_with_both_files(other: StoreMetadata, message: str) -> None:
    first = StoreMetadata(4, "t", StoreEncryption("", "k"), (), (IndexColumn("i", "minmax", ("a",)),))
    with pytest.raises(CorruptFileError, match=message) as refused:
        merge_metadata([("p", first), ("q", other)])
    assert refused.value.path == "q"


def test_index_is_an_immutable_value() -> None:
    one = IndexColumn.create("minmax", ["n.A"], {"p": "1"})
    assert one == pickle.loads(pickle.dumps(one)) == IndexColumn("n$#$a_minmax_5", "minmax", ("n.A",), {"p": "1"})
    assert len({one, IndexColumn.create("minmax", ["n.A"], {"p": "1"})}) == 1
    with pytest.raises(TypeError):
        one.params["p"] = "2"  # type: ignore[index]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from(["k:a", "4"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["index", "cols", "name", "params", "key_metadata", "tableIdentifier", "version", "encryption",
                         "encryption.column.keys", "encryption.footer.key", "encryption.plaintext.footer"]),
        inner, max_size=4,
    ), max_leaves=12,
)  # fmt: skip


@given(JSON, st.lists(JSON, max_size=3))
def test_arbitrary_metadata_is_read_or_rejected(about: Any, columns: list[Any]) -> None:
    """What is read is of the types that it is declared to have, and is written as it was read."""
    fields = [{"name": "obj_name", "type": "string", "metadata": about}]
    fields += [{"name": f"c{at}", "type": "binary", "metadata": one} for at, one in enumerate(columns)]
    try:
        found = from_spark(spark_schema.parse(json.dumps({"type": "struct", "fields": fields}), "part"), "part")
    except CorruptFileError:
        return
    for one in found.indexes:
        assert {type(text) for text in (one.index, *one.columns, *one.params, *one.params.values())} == {str}
    assert isinstance(found.table_identifier, str | None)
    if found.is_usable:
        schema = pa.schema({one.name: pa.binary() for one in found.indexes})
        assert from_spark(to_spark(found, schema)) == found


HOSTILE = {
    "deep": ("[" * 100_000, "is nested too deeply"),
    "cut": ('{"type":"struct","fields":[', "is not JSON"),
    "huge number": ('{"type":"struct","fields":[{"name":"a","type":"b","n":' + "9" * 5000 + "}]}", "is not JSON"),
    "list": ("[]", "not a struct"),
    "fields": ('{"type":"struct","fields":{}}', "not a struct"),
    "name": ('{"type":"struct","fields":[{"type":"long"}]}', "no name at field 0"),
    "field": ('{"type":"struct","fields":[1]}', "no name at field 0"),
    "type": ('{"type":"struct","fields":[{"name":"a","type":{"fields":[]}}]}', "has no type"),
    "nullable": (
        '{"type":"struct","fields":[{"name":"a","type":"long","nullable":0}]}',
        "invalid 'nullable'",
    ),
    "metadata": ('{"type":"struct","fields":[{"name":"a","type":"long","metadata":[]}]}', "is not an object"),
    "long": (" " * (8 << 20) + "[]", "more than 8,388,608"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_schema_is_rejected_with_the_file(name: str) -> None:
    text, message = HOSTILE[name]
    with pytest.raises(CorruptFileError, match=message) as refused:
        spark_schema.parse(text, "part")
    assert refused.value.path == "part"


def test_types_match_those_of_spark() -> None:
    told = [
        (pa.uint32(), "long"), (pa.uint64(), "decimal(20,0)"), (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"), (pa.decimal128(9, 2), "decimal(9,2)"), (pa.binary(4), "binary"),
    ]  # fmt: skip
    assert [spark_schema.spark_type(kind, "c") for kind, _ in told] == [name for _, name in told]
    for kind in (pa.timestamp("ns"), pa.duration("s"), pa.decimal256(40, 0), pa.map_(pa.string(), pa.string())):
        with pytest.raises(UnsupportedError, match=r"Spark has no equivalent of .* \[column c\]"):
            spark_schema.spark_type(kind, "c")
