"""Files rewritten with other shredding hold the same values, and everything else as it was."""

from __future__ import annotations

import io
import json
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from variant_cases import FOLDER, all_cases, may_fail, must_fail

import pqext
from pqext import geo, variant
from pqext.core.base.errors import UnsupportedError, VariantError
from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.footer.reading import read_footer
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.footer.writing import footer_format_of, rewrite_footer
from pqext.core.format.metadata import FileMetaData
from pqext.core.io.sources.locations import open_source
from pqext.core.options.layout import FORMATS, FooterFormat
from pqext.variant.rewriting import LossError
from pqext.variant.shredding.schema import ShreddingSchema, shredding_schema, storage_struct
from reference import variant_shred as reference
from reference.variant_files import annotated
from reference.variant_strategies import fewer, schemas, valid_variants

DOCUMENTS = ['{"a": 1, "b": "x"}', '{"a": 2.5, "c": [1, "y"]}', None, "7", '{"a": {"d": null}, "b": "z"}'] * 40
METADATA = reference.encode_metadata(["a", "b"])


def loaded(text: str | None) -> Any:
    """A document whose numbers are equal however they are written; a null row is no document."""
    return ("null row",) if text is None else json.loads(text, parse_int=Decimal, parse_float=Decimal)


def values(source: Any, column: str = "v") -> list[Any]:
    return [loaded(text) for text in variant.to_json(pqext.read_table(source)[column]).to_pylist()]


WANTED = [loaded(text) for text in DOCUMENTS]


def table() -> pa.Table:
    parsed = variant.parse_json(pa.array(DOCUMENTS))
    fields = [
        pa.field("i", pa.int64(), metadata={"PARQUET:field_id": "7"}), variant.variant_field("v"),
        variant.variant_field("w"), pa.field("s", pa.string()), pa.field("t", pa.timestamp("ms", "UTC")),
    ]  # fmt: skip
    texts, times = pa.array(["p", None, "q", "q"] * 50), pa.array([5] * 200, fields[4].type)
    schema = pa.schema(fields, metadata={"origin": "test"})
    return pa.table([pa.array(range(200)), parsed, parsed, texts, times], schema=schema)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.parquet"
    pqext.write_table(
        table(), path, row_group_rows=90, compression={"i": "zstd", "s": "gzip", "v.metadata": "zstd"},
        dictionary={"i": False}, encodings={"i": "delta_binary_packed"}, bloom_filters={"s": True}, sorting=["i"],
        page_version=2, statistics={"t": False},
    )  # fmt: skip
    return path


def test_values_survive_every_schema_and_unshredding(plain: Path, tmp_path: Path) -> None:
    shredded, whole = tmp_path / "shredded.parquet", tmp_path / "whole.parquet"
    done = variant.reshred_file(plain, shredded, {"v": "a BIGINT, b STRING", "w": "infer"})
    assert (done.rows, done.row_groups, done.invalid) == (200, 3, 0)
    assert str(done.schemas["v"]) == "STRUCT<a: BIGINT, b: STRING>"
    for column in ("v", "w"):
        assert values(shredded, column) == values(plain, column) == WANTED
    schema = pq.ParquetFile(shredded).schema_arrow
    assert schema.field("v").type.field("typed_value").type.field("a").type.field("typed_value").type == pa.int64()
    variant.unshred_file(shredded, whole)
    assert {child.name for child in pq.ParquetFile(whole).schema_arrow.field("v").type} == {"metadata", "value"}
    assert values(whole) == values(whole, "w") == WANTED
    for path in (shredded, whole):
        assert pqext.verify(path).ok


def test_other_columns_metadata_row_groups_and_codecs_are_preserved(plain: Path, tmp_path: Path) -> None:
    dest = tmp_path / "dest.parquet"
    variant.reshred_file(plain, dest, "a BIGINT")
    before, after = pq.ParquetFile(plain), pq.ParquetFile(dest)
    names = ["i", "s", "t"]
    assert after.read(names).equals(before.read(names), check_metadata=True)
    assert after.schema_arrow.metadata[b"origin"] == b"test"
    assert after.metadata.num_row_groups == 3
    for group in range(3):
        old, new = before.metadata.row_group(group), after.metadata.row_group(group)
        assert old.num_rows == new.num_rows
        chunks = {new.column(i).path_in_schema: new.column(i) for i in range(new.num_columns)}
        for i in range(old.num_columns):
            was, now = old.column(i), chunks[old.column(i).path_in_schema]
            for name in ("compression", "encodings", "is_stats_set", "has_offset_index", "has_dictionary_page"):
                assert getattr(was, name) == getattr(now, name), (name, was.path_in_schema)
        assert new.sorting_columns == old.sorting_columns
    assert {chunks[path].compression for path in chunks if path.startswith("v.typed_value")} == {"ZSTD"}
    with pqext.open(dest) as file:
        assert file.row_groups[0].chunk(file.schema.find("s").leaf_start).bloom_filter is not None  # type: ignore[union-attr]
        assert file.row_groups[0].chunk(0).bloom_filter is None


def test_options_override_those_of_the_file(plain: Path, tmp_path: Path) -> None:
    dest = tmp_path / "dest.parquet"
    variant.reshred_file(plain, dest, "a BIGINT", compression="snappy", row_group_rows=50)
    metadata = pq.read_metadata(dest)
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [50] * 4
    assert {metadata.row_group(0).column(i).compression for i in range(metadata.num_columns)} == {"SNAPPY"}
    with pytest.raises(TypeError, match="argument schema"):
        variant.reshred_file(plain, dest, shredding={"v": "a INT"})


def test_options_are_also_accepted_as_one_object(plain: Path, tmp_path: Path) -> None:
    dest = tmp_path / "dest.parquet"
    for rewrite in (variant.unshred_file, lambda *a, **k: variant.reshred_file(*a, "a BIGINT", **k)):
        rewrite(plain, dest, options=pqext.WriteOptions(compression="gzip", page_rows=7), page_rows=9)
        with pqext.open(dest) as file:
            assert {chunk.metadata.codec.name for chunk in file.row_groups[0].chunks()} == {"GZIP"}
            places = file.row_groups[0].chunk(0).offset_index.page_locations  # type: ignore[union-attr]
            assert places[1].first_row_index == 9
        with pytest.raises(TypeError, match="options must be WriteOptions, not ReadOptions"):
            rewrite(plain, dest, options=pqext.ReadOptions())
        with pytest.raises(TypeError, match="the argument schema"):
            rewrite(plain, dest, options=pqext.WriteOptions(shredding={"v": "a INT"}))


def test_in_place_rewrite_leaves_the_file_intact_on_failure(plain: Path) -> None:
    variant.reshred_file(plain, plain, {"v": "b STRING"})
    assert values(plain) == WANTED
    before = plain.read_bytes()
    with pytest.raises(ValueError, match="no VARIANT column 'x'; it has v, w"):
        variant.reshred_file(plain, plain, {"x": "b STRING"})
    broken = plain.with_name("broken.parquet")
    broken.write_bytes(file_of([{"value": b"\x0c", "typed_value": None}], "INT"))
    with pytest.raises(VariantError):
        variant.reshred_file(broken, plain)
    assert plain.read_bytes() == before
    assert sorted(path.name for path in plain.parent.iterdir()) == ["broken.parquet", "plain.parquet"]


def file_of(rows: list[Any], schema: str, **options: Any) -> bytes:
    type = storage_struct(shredding_schema(schema))
    column = pa.array([row and {"metadata": METADATA, **row} for row in rows], type)
    return annotated(pa.table({"v": column, "i": range(len(rows))}), **options)


def integer(number: int) -> bytes:
    return reference.primitive("int32", number)


def fields(**given: bytes) -> bytes:
    return reference.object_of([("ab".index(name), value) for name, value in sorted(given.items())])


MENDED = [
    ("INT", {"value": integer(5), "typed_value": 1}, "1", "shredding.value.exclusive"),
    (
        "a INT", {"value": fields(a=integer(5), b=integer(6)), "typed_value": {"a": {"typed_value": 1}}},
        '{"a": 1, "b": 6}', "shredding.object.disjoint",
    ),
    ("a INT", {"value": fields(b=integer(6)), "typed_value": None}, '{"b": 6}', "shredding.object.typed"),
    ("ARRAY<INT>", {"value": None, "typed_value": [{}]}, "[null]", "shredding.array.present"),
    ("ARRAY<INT>", {"value": reference.array_of([]), "typed_value": None}, "[]", "shredding.array.typed"),
    ("INT", {"value": None, "typed_value": None}, "null", "shredding.value.missing"),
    (
        "z INT", {"value": None, "typed_value": {"z": {"typed_value": 1}}}, '{"z": 1}', "shredding.metadata.names",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "row", "text", "rule"), MENDED, ids=[rule for *_, rule in MENDED])
@pytest.mark.spec("shredding.object.conflict", "shredding.value.required-missing")
def test_tolerated_faults_are_repaired_or_rejected_on_request(
    schema: str, row: dict[str, Any], text: str, rule: str, tmp_path: Path
) -> None:
    source = file_of([{"value": b"\0", "typed_value": None}, row], schema, row_group_size=1)
    assert not pqext.verify(source).ok
    for rewrite in (variant.reshred_file, variant.unshred_file):
        dest = tmp_path / "dest.parquet"
        rewrite(source, dest)  # type: ignore[operator]
        assert pqext.verify(dest).ok
        assert values(dest) == [None, loaded(text)]
        with pytest.raises(VariantError) as caught:
            rewrite(source, dest, strict=True)  # type: ignore[operator]
        assert (caught.value.rule, caught.value.row, caught.value.row_group) == (rule, 1, 1)


INVALID = [
    ("a INT", {"value": integer(5), "typed_value": {"a": {}}}, "shredding.object.residual-kind", "v.value"),
    (
        "a INT", {"value": None, "typed_value": {"a": {"value": b"\x0c"}}}, "variant.value.layout",
        "v.typed_value.a.value",
    ),
    ("INT", {"metadata": b"\x02\0\0", "value": b"\0", "typed_value": None}, "variant.metadata.version", "v.metadata"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "row", "rule", "column"), INVALID, ids=[rule for _, _, rule, _ in INVALID])
def test_unreadable_values_are_rejected_or_become_null(
    schema: str, row: dict[str, Any], rule: str, column: str, tmp_path: Path
) -> None:
    source = file_of([None, row, {"value": b"\0", "typed_value": None}], schema)
    dest = tmp_path / "dest.parquet"
    with pytest.raises(VariantError) as caught:
        variant.reshred_file(source, dest)
    assert (caught.value.rule, caught.value.row, caught.value.column) == (rule, 1, column)
    assert not dest.exists()
    for coerce in ("equivalent", "exact"):
        done = variant.reshred_file(source, dest, invalid_values="null", coerce=coerce)  # type: ignore[arg-type]
        assert done.invalid == 1
        assert values(dest) == [loaded(None), loaded(None), None]
        assert pqext.verify(dest).ok


def test_nested_variants_are_rewritten() -> None:
    parsed = variant.parse_json(pa.array(['{"a": 1}', '{"a": 2, "b": 3}', "4", None]))
    field = variant.variant_field("v")
    inner = pa.StructArray.from_arrays([parsed, pa.array([1, 2, 3, 4])], fields=[field, pa.field("n", pa.int64())])
    mask = pa.array([False, True, False, False])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 3, 4], pa.int32()), inner, mask=mask)
    maps = pa.MapArray.from_arrays(pa.array([0, 2, 2, 3, 4], pa.int32()), pa.array(["k", "j", "k", "k"]), inner)
    source, shredded, whole = io.BytesIO(), io.BytesIO(), io.BytesIO()
    nested = pa.table({"s": inner, "l": lists, "m": maps})
    pqext.write_table(nested, source)
    done = variant.reshred_file(source.getvalue(), shredded, "a INT")
    assert [str(schema) for schema in done.schemas.values()] == ["STRUCT<a: INT>"] * 3
    assert len([leaf for leaf in pqext.open(shredded.getvalue()).schema.leaves if "typed_value" in leaf.path]) == 6
    variant.unshred_file(shredded.getvalue(), whole)
    before = pqext.read_table(source.getvalue())
    for after in (shredded, whole):
        assert pqext.verify(after.getvalue()).ok
        table = pqext.read_table(after.getvalue())
        assert table.schema == before.schema
        for name in ("s", "l", "m"):
            flat, same = flattened(table[name]), flattened(before[name])
            assert variant.to_json(flat).to_pylist() == variant.to_json(same).to_pylist()
    one = variant.reshred_file(source.getvalue(), io.BytesIO(), {next(iter(done.schemas)): "b INT"})
    assert [str(schema) for schema in one.schemas.values()] == ["STRUCT<b: INT>", "VARIANT", "VARIANT"]
    inferred = variant.reshred_file(source.getvalue(), io.BytesIO(), "infer")
    rows = {"s": inner, "l": lists.flatten(), "m": maps.items}
    for (path, schema), array in zip(inferred.schemas.items(), rows.values(), strict=True):
        assert path.startswith(tuple(rows))
        assert str(schema) == str(variant.infer_schema(array.field("v")))


def flattened(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_map(array.type):
        array = array.items
    elif pa.types.is_list(array.type):
        array = array.values
    return array.field(0)


@fewer
@given(st.lists(st.one_of(st.none(), valid_variants()), min_size=1, max_size=5), schemas(), schemas())
def test_every_value_survives_shredding_by_two_schemas(
    rows: list[tuple[bytes, bytes] | None], first: ShreddingSchema, second: ShreddingSchema
) -> None:
    array = pa.array([row and {"metadata": row[0], "value": row[1]} for row in rows], variant.variant_type())
    source, middle, dest = io.BytesIO(), io.BytesIO(), io.BytesIO()
    pqext.write_table(pa.table([array], schema=pa.schema([variant.variant_field("v")])), source, shredding={"v": first})
    variant.reshred_file(source.getvalue(), middle, second, coerce="exact")
    variant.unshred_file(middle.getvalue(), dest)
    assert pqext.verify(middle.getvalue()).ok
    for row, found in zip(rows, pqext.read_table(dest.getvalue())["v"].to_pylist(), strict=True):
        assert (row is None) == (found is None)
        if row is not None:
            was = reference.decode(row[1], reference.decode_metadata(row[0]))
            now = reference.decode(found["value"], reference.decode_metadata(found["metadata"]))
            assert reference.equivalent(was) == reference.equivalent(now)


def test_duckdb_reads_equal_values_before_and_after(plain: Path, tmp_path: Path) -> None:
    shredded = tmp_path / "shredded.parquet"
    variant.reshred_file(plain, shredded, "a DECIMAL(9,2), b STRING, c ARRAY<BIGINT>", coerce="exact")
    texts = [
        duckdb.sql(f"select v::json::varchar, i from '{path}' order by i").fetchall() for path in (plain, shredded)
    ]
    assert texts[0] == texts[1]


def test_encrypted_files_and_files_without_variants_are_rejected(tmp_path: Path) -> None:
    key = b"0123456789012345"
    secret, dest = io.BytesIO(), tmp_path / "dest.parquet"
    pqext.write_table(table(), secret, encryption=pqext.encryption.FileEncryption(key))
    keys = pqext.encryption.FileDecryption(key)
    with pytest.raises(ValueError, match="pass encryption="):
        variant.reshred_file(secret.getvalue(), dest, decryption=keys)
    variant.reshred_file(secret.getvalue(), dest, decryption=keys, encryption=None)
    assert values(dest) == WANTED
    out = io.BytesIO()
    pqext.write_table(pa.table({"i": [1]}), out)
    with pytest.raises(ValueError, match="no VARIANT column"):
        variant.unshred_file(out.getvalue(), dest)
    for wrong in ({"invalid_values": "skip"}, {"coerce": "same"}):
        with pytest.raises(ValueError, match=r"invalid_values|coerce"):
            variant.reshred_file(out.getvalue(), dest, **wrong)  # type: ignore[arg-type]


def test_unknown_codec_is_named_with_its_column(plain: Path, tmp_path: Path) -> None:
    data = plain.read_bytes()
    footer = read_footer(open_source(data), DEFAULT_LIMITS)
    chunk = footer.metadata.row_groups[0].columns[1]
    name = pqext.open(data).schema.leaves[1].dotted_path
    chunk.meta_data.codec = 99
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(data[: footer.offset] + serialise_footer(footer.metadata))
    for rewrite in (variant.reshred_file, variant.unshred_file):
        with pytest.raises(UnsupportedError, match="codec 99") as caught:
            rewrite(bad, tmp_path / "out")
        assert caught.value.column == name
        assert "bad.parquet" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_progress_counts_the_rows(plain: Path) -> None:
    calls: list[tuple[int, int]] = []
    variant.reshred_file(plain, io.BytesIO(), progress=lambda done, total: calls.append((done, total)))
    assert calls == [(90, 200), (180, 200), (200, 200)]


UNREADABLE = {
    "case-087.parquet": "shredding.object.residual-kind", "case-128.parquet": "shredding.object.residual-kind",
    "case-137.parquet": "shredding.types",
}  # fmt: skip


@pytest.mark.skipif(not all_cases(), reason="PARQUET_TEST_DATA does not name the parquet-testing folder")
def test_public_cases_are_rewritten_with_equal_values() -> None:
    for case in all_cases():
        path, dest = FOLDER / case["parquet_file"], io.BytesIO()
        if must_fail(case):
            with pytest.raises(VariantError) as caught:
                variant.reshred_file(path, dest)
            assert caught.value.rule == UNREADABLE.get(path.name, caught.value.rule)
            continue
        if may_fail(case):
            try:
                pqext.read_table(path)
            except VariantError:
                continue
        expected = values(path, "var")
        for rewrite in (variant.reshred_file, variant.unshred_file):
            dest = io.BytesIO()
            rewrite(path, dest)  # type: ignore[operator]
            assert values(dest.getvalue(), "var") == expected, path.name
            assert pqext.verify(dest.getvalue()).ok, path.name


def test_corrupt_file_is_repaired_in_its_footer_format(plain: Path, tmp_path: Path) -> None:
    shredded, mended = tmp_path / "shredded.parquet", tmp_path / "mended.parquet"
    variant.reshred_file(plain, shredded, "id INT", compression="zstd")
    data = bytearray(shredded.read_bytes())
    with pqext.open(shredded) as file:
        rows, groups = file.num_rows, [group.num_rows for group in file.row_groups]
        chunk = next(iter(file.row_groups[-1].chunks()))
        assert len(groups) > 1
        data[chunk.metadata.data_page_offset + chunk.metadata.total_compressed_size - 2] ^= 255
    done = pqext.repair(bytes(data), mended)
    assert (done.rows, done.row_groups) == (rows - groups[-1], len(groups) - 1)
    assert [(one.row_group, one.start, one.stop) for one in done.damage] == [(len(groups) - 1, 0, groups[-1])]
    assert f"skipped: rows 0 to {groups[-1] - 1:,} of" in repr(done)
    assert pqext.verify(mended).ok
    read = pq.read_table(mended)
    assert read.equals(pq.read_table(shredded).slice(0, done.rows))
    with pq.ParquetFile(mended) as file:
        assert {file.metadata.row_group(0).column(i).compression for i in range(file.metadata.num_columns)} == {"ZSTD"}
    with pytest.warns(pqext.CorruptDataWarning):
        assert variant.unshred_file(bytes(data), mended, on_corrupt="skip").rows == done.rows
    with pytest.raises(pqext.CorruptFileError):
        variant.unshred_file(bytes(data), mended)


@pytest.mark.parametrize("store", ["", "memory://overwrite/"])
def test_file_is_not_replaced_by_one_with_fewer_rows_by_default(tmp_path: Path, store: str) -> None:
    whole, bad = tmp_path / "whole.parquet", f"{store or tmp_path}/bad.parquet"
    table = pa.table({"v": variant.parse_json(["1", "2", "3"]), "n": range(3)})
    pqext.write_table(table, whole, row_group_rows=1)
    data = bytearray(whole.read_bytes())
    data[60] ^= 255
    with pqext.core.io.sink.Sink(bad) as sink:
        sink.write(data)
    calls: list[Any] = [
        pqext.repair, lambda *given, **more: variant.unshred_file(*given, on_corrupt="skip", **more),
        lambda *given, **more: variant.reshred_file(*given, on_corrupt="skip", **more),
    ]
    for call in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(ValueError, match=r"would be lost.*overwrite=True"):
                call(bad, bad)
            assert call(bad, io.BytesIO()).rows == 2
    with pqext.open(bad) as file:
        assert file.num_rows == 3
    assert pqext.repair(bad, bad, overwrite=True).rows == 2
    assert pqext.repair(bad, bad).rows == 2  # now nothing is lost


def test_file_without_variants_is_repaired(tmp_path: Path) -> None:
    path, mended = tmp_path / "a.parquet", tmp_path / "b.parquet"
    at = geo.from_points([1.0, 2.0], [3.0, 4.0])
    pqext.write_table(pa.table({"a": [1, 2], "at": at}), path, geometry={"at": "OGC:CRS84"}, row_group_rows=1)
    assert pqext.repair(path, mended).damage == ()
    assert pqext.read_table(mended).equals(pqext.read_table(path))
    with pqext.open(path) as one, pqext.open(mended) as other:
        assert [group.num_rows for group in other.row_groups] == [1, 1]
        assert one.arrow_schema.equals(other.arrow_schema, check_metadata=True)


def test_encodings_of_other_types_in_a_corrupt_list_are_dropped(tmp_path: Path) -> None:
    data, mended = io.BytesIO(), tmp_path / "a.parquet"
    rows = pa.table({"n": range(100), "s": [str(row) for row in range(100)]})
    pqext.write_table(rows, data, dictionary=False, encodings={"n": "delta_binary_packed", "s": "delta_byte_array"})

    def exchanged(metadata: FileMetaData) -> None:
        one, other = (column.meta_data for column in metadata.row_groups[0].columns)
        assert one is not None
        assert other is not None
        one.encodings, other.encodings = other.encodings, [6, *one.encodings]

    changed = io.BytesIO()
    rewrite_footer(data, exchanged, changed)
    pqext.repair(changed.getvalue(), mended)
    assert pqext.read_table(mended) == rows
    with pqext.open(mended) as file:
        assert 6 in file.metadata.row_groups[0].columns[1].meta_data.encodings


@pytest.mark.parametrize("footer", FORMATS)
def test_footer_format_is_preserved(footer: FooterFormat, tmp_path: Path) -> None:
    pqext.write_table(pa.table({"n": range(100)}), tmp_path / "in.parquet", footer=footer)
    pqext.repair(tmp_path / "in.parquet", tmp_path / "out.parquet")
    with open_source(tmp_path / "out.parquet") as source:
        assert footer_format_of(source) == footer
    assert pqext.read_table(tmp_path / "out.parquet")["n"].to_pylist() == list(range(100))


def test_loss_that_prevents_replacement_is_reported(tmp_path: Path) -> None:
    pqext.write_table(pa.table({"n": range(100)}), tmp_path / "in.parquet", row_group_rows=25)
    data = bytearray((tmp_path / "in.parquet").read_bytes())
    data[60] ^= 1
    (tmp_path / "in.parquet").write_bytes(data)
    told = r"25 rows of 100 of file .*in\.parquet cannot be read.*; overwrite=True allows it"
    with pytest.raises(LossError, match=told):
        pqext.repair(tmp_path / "in.parquet", tmp_path / "in.parquet")


def test_loss_of_very_many_rows_is_reported_quickly(tmp_path: Path) -> None:
    made = io.BytesIO()
    pqext.write_table(pa.table({"n": range(100)}), made, row_group_rows=50)
    with pqext.open(made.getvalue()) as file:
        footer, metadata = file.footer.offset, file.metadata
    metadata.row_groups[0].num_rows = 1 << 50
    metadata.num_rows = (1 << 50) + 50
    (tmp_path / "in.parquet").write_bytes(made.getvalue()[:footer] + serialise_footer(metadata))
    with pytest.raises(LossError, match="rows of 1,125,899,906,842,674 of file"):
        pqext.repair(tmp_path / "in.parquet", tmp_path / "in.parquet")


def test_null_in_a_required_column_is_an_error_with_path_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "required.parquet"
    field = pa.field("v", variant.variant_type(), nullable=False)
    values = variant.parse_json(["1", "2"])
    pqext.write_table(pa.Table.from_arrays([values], schema=pa.schema([field])), path)
    monkeypatch.setattr("pqext.variant.rewriting.unshred", lambda array: pa.nulls(len(array), array.type))
    with pytest.raises(pqext.ParquetError, match=r"'v' is not nullable but contains a null \[.*\]; declare") as raised:
        pqext.repair(path, tmp_path / "out.parquet")
    assert (raised.value.path, raised.value.column) == (str(path), "v")
    assert not (tmp_path / "out.parquet").exists()


def test_row_groups_larger_than_the_limit_of_memory_are_divided(tmp_path: Path) -> None:
    # 200,000 rows of one text of 1,000 bytes: a few kilobytes that become 200 MB.
    path, dest = tmp_path / "repeats.parquet", tmp_path / "repaired.parquet"
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(200_000, np.int32)), ["x" * 1000])
    pq.write_table(pa.table({"a": text}), path, store_schema=False)
    pqext.repair(path, dest, limits=pqext.Limits.untrusted(memory_bytes=40 << 20, memory_expansion=0))
    metadata = pq.ParquetFile(dest).metadata
    sizes = [metadata.row_group(i).num_rows * 1000 for i in range(metadata.num_row_groups)]
    assert sum(sizes) == 200_000_000
    assert 10 << 20 < max(sizes) < 40 << 20
    pqext.repair(path, dest)
    assert pq.ParquetFile(dest).metadata.num_row_groups == 1


def test_shredding_of_columns_with_one_name_is_not_inferred(tmp_path: Path) -> None:
    table = pa.table({"v": variant.parse_json(['{"a": 1}']), "w": variant.parse_json(['{"a": 2}'])})
    pqext.write_table(table, tmp_path / "v.parquet")
    data = (tmp_path / "v.parquet").read_bytes().replace(b"\x01w", b"\x01v")
    problem = "more than one column 'v', so that no shredding can be inferred; pass a schema"
    with pytest.raises(ValueError, match=problem):
        variant.reshred_file(io.BytesIO(data), tmp_path / "out.parquet")
    done = variant.reshred_file(io.BytesIO(data), tmp_path / "out.parquet", "a BIGINT")
    assert list(done.schemas) == ["v"]
    columns = pqext.read_table(tmp_path / "out.parquet").columns
    assert [variant.to_json(column).to_pylist() for column in columns] == [['{"a":1}'], ['{"a":2}']]
