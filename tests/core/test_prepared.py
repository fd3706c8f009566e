"""Files of one schema and the same options are prepared once, and differ where anything of these does."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.schema import annotations
from pqext.core.schema.annotations import Annotation
from pqext.core.write import write_plan

TABLE = pa.table({"a": [1, 2, None], "b": ["x", "y", "z"]})


def written(table: pa.Table = TABLE, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


@pytest.fixture
def prepared_schemas(monkeypatch: pytest.MonkeyPatch) -> list[pa.Schema]:
    """The schemas that are prepared anew from now on."""
    seen: list[pa.Schema] = []
    real = write_plan.prepare

    def counted(derived: Any, *others: Any) -> Any:
        seen.append(derived.schema)
        return real(derived, *others)

    monkeypatch.setattr("pqext.core.write.writer.prepare", counted)
    monkeypatch.setattr(write_plan, "_recent", [])
    return seen


def test_second_file_reuses_the_plan_and_has_equal_bytes(prepared_schemas: list[pa.Schema]) -> None:
    assert written() == written() == written(pa.table(TABLE.to_pydict(), schema=TABLE.schema))
    assert written(compression="zstd") == written(compression="zstd") != written()
    assert len(prepared_schemas) == 2


@pytest.mark.parametrize(
    "other",
    [
        TABLE.replace_schema_metadata({"k": "v"}),
        TABLE.cast(pa.schema([pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "7"}), TABLE.schema.field("b")])),
        TABLE.cast(pa.schema([("a", pa.int32()), ("b", pa.string())])),
        TABLE.rename_columns(["a", "c"]),
    ],
)
def test_different_schema_is_planned_separately(prepared_schemas: list[pa.Schema], other: pa.Table) -> None:
    before = written()
    assert pq.read_schema(io.BytesIO(written(other))).equals(other.schema, check_metadata=False)
    assert written() == before
    assert len(prepared_schemas) == 2


@pytest.mark.parametrize("options", [{"encodings": {"a": "delta_binary_packed"}}, {"key_value_metadata": {"k": "v"}}])
def test_column_options_are_evaluated_each_time(prepared_schemas: list[pa.Schema], options: dict[str, Any]) -> None:
    assert written(**options) == written(**options)
    assert len(prepared_schemas) == 2


def test_empty_column_mappings_differ_from_false(prepared_schemas: list[pa.Schema]) -> None:
    def index_flags(data: bytes) -> tuple[bool, bool]:
        chunk = pq.read_metadata(io.BytesIO(data)).row_group(0).column(0)
        return chunk.is_stats_set, chunk.has_column_index

    assert index_flags(written(statistics={}, page_index=False)) == (True, False)
    assert index_flags(written(statistics=False, page_index={})) == (False, False)
    assert len(prepared_schemas) == 2


def test_later_registration_takes_effect(prepared_schemas: list[pa.Schema], monkeypatch: pytest.MonkeyPatch) -> None:
    written()
    monkeypatch.setattr(annotations, "_REGISTRY", dict(annotations._REGISTRY))
    annotations.register(Annotation("NEW", "nowhere:HANDLER", frozenset({"new"})))
    written()
    assert len(prepared_schemas) == 2
