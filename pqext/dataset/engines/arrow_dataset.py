"""A scan as a pyarrow dataset, for DuckDB and other engines that push columns and conditions down to datasets.

Engines pass conditions as pyarrow expressions and rely on the dataset to apply them. pyarrow evaluates the complete
condition on the rows of the scan. The translatable part is pushed down to the files, which prunes rows that cannot
match. A pyarrow expression has no public structure, so its text is parsed. A parsed condition is used only if its
translation back to pyarrow equals the original expression.

The conjuncts of a condition are read from its pickled form: a batch of its literals whose schema metadata lists the
calls and columns in sequence.
"""

from __future__ import annotations

import json
import math
import operator
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from pqext.dataset.engines.pushdown import ScanSource, batches_of
from pqext.dataset.expressions import Expression, all_of, any_of, col

BATCH_ROWS = 131_072
MAX_TEXT = 20_000
"""Maximum length of a condition's text."""
_NO_FILE = "a scan of pqext, which is read by its method scanner alone"
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}
_IS_IN = re.compile(
    r"\), is_in\(.*?, \{value_set=[^\n]*:\[\n(.*?)\n\], null_matching_behavior=MATCH\}\), null\[bool\]\)", re.S
)
_NESTED = re.compile(r"FieldRef\.Nested\(((?:FieldRef\.Name\([^()]*\) ?)+)\)")
Items = list[tuple[str, str]]
"""Start and end of calls, columns, literals and options, by their position in the batch."""
_AND = ("call", "and_kleene")
_HEADER, _METADATA = 2, 2
"""Flatbuffer field positions: the schema in its message, the metadata in the schema."""


def _unsupported_method(name: str, remedy: str) -> Callable[..., NoReturn]:
    def method(self: ScanDataset, *arguments: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(f"a dataset of a pqext scan does not support {name}(); {remedy}")

    return method


class ScanDataset(ds.FileSystemDataset):  # type: ignore[misc]
    """A scan as a pyarrow dataset.

    It can be read with ``scanner`` and the methods based on it; other methods raise an error.
    """

    def __init__(self, scan: ScanSource) -> None:
        # Other pyarrow code would open this file, which does not exist, and therefore raises an error.
        form, local = ds.ParquetFileFormat(), fs.LocalFileSystem()
        super().__init__([form.make_fragment(_NO_FILE, local)], scan.schema, form, local)
        self._scan = scan

    @property
    def schema(self) -> pa.Schema:
        """The schema of the scan."""
        return self._scan.schema

    def scanner(
        self, columns: Sequence[str] | dict[str, pc.Expression] | None = None, filter: pc.Expression | None = None,
        batch_size: int = BATCH_ROWS, **options: Any,
    ) -> ds.Scanner:
        """Return a scanner of the ``columns`` of the rows that match ``filter``. The scanner can be read once."""
        schema = self.schema
        names = list(schema.names)
        if columns is not None and not isinstance(columns, dict):
            requested = set(columns) if filter is None else {*columns, *_used_columns(filter, schema)}
            names = [name for name in names if name in requested]
        result = self._scan if names == schema.names else self._scan.select(names)
        pushed = None if filter is None else translate(filter, schema)
        batches = batches_of(result, pushed, batch_size)
        reader = pa.RecordBatchReader.from_batches(result.schema, batches)
        return ds.Scanner.from_batches(reader, columns=columns, filter=filter, batch_size=batch_size)

    filter = _unsupported_method("filter", "filter the scan instead")
    get_fragments = _unsupported_method("get_fragments", "read the dataset with scanner() instead")
    replace_schema = _unsupported_method("replace_schema", "cast the result of to_table() instead")
    join = _unsupported_method("join", "join the result of to_table() instead")
    join_asof = _unsupported_method("join_asof", "join the result of to_table() instead")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a dataset of a pqext scan cannot be pickled; pickle the scan instead")


def _used_columns(filter: pc.Expression, schema: pa.Schema) -> list[str]:
    """Return the columns that ``filter`` uses."""
    return [name for at, name in enumerate(schema.names) if not _can_bind(filter, schema.remove(at))]


def _can_bind(filter: pc.Expression, schema: pa.Schema) -> bool:
    try:
        ds.dataset(schema.empty_table()).scanner(filter=filter)
    except (pa.ArrowException, ValueError, KeyError, IndexError):
        return False
    return True


def translate(filter: pc.Expression, schema: pa.Schema) -> Expression | None:
    """Translate ``filter`` to a condition that is true for all matching rows, and possibly for other rows.

    Return None if no part of it can be translated.
    """
    whole = _translate_exactly(filter, schema)
    if whole is not None:
        return whole
    results = [_translate_exactly(part, schema) for part in conjuncts(filter)]
    parts = [part for part in results if part is not None]
    return all_of(parts) if parts else None


def _translate_exactly(filter: pc.Expression, schema: pa.Schema) -> Expression | None:
    """Translate a condition to an equivalent one. Return None if any part of the condition cannot be translated."""
    text = str(filter)
    if len(text) > MAX_TEXT:
        return None
    try:
        result = _TextParser(text, schema).condition()
    except (_UnsupportedTextError, pa.ArrowException, ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None
    theirs, ours = result
    return ours if theirs.equals(filter) else None


class _UnsupportedTextError(Exception):
    """Raised if the parser does not support the text of an expression."""


Both = tuple[Any, Expression]
"""A pyarrow condition, and a pqext condition that is true for at least the same rows."""


class _TextParser:
    """Recursive-descent parser of the text of a pyarrow expression."""

    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._rest = text
        self._schema = schema

    def condition(self) -> Both:
        """Parse the complete text and return the condition."""
        result = self._parse_part()
        if self._rest:
            raise _UnsupportedTextError
        return result

    def _parse_part(self) -> Both:
        for name in ("is_valid", "is_null"):
            if self._skip(f"{name}("):
                return self._parse_null_test(name)
        if self._skip("if_else(is_valid("):
            return self._parse_is_in()
        self._consume("(")
        if self._rest.startswith(("(", "is_valid(", "is_null(", "if_else(")):
            return self._parse_operands()
        column, field = self._parse_column()
        sign = re.match(r" (==|!=|<=|>=|<|>) ", self._rest)
        if sign is None:
            raise _UnsupportedTextError
        self._rest = self._rest[sign.end() :]
        value = self._parse_literal(field.type)
        self._consume(")")
        compare = _COMPARE[sign[1]]
        return compare(_field(column), pc.scalar(value)), compare(col(list(column)), _literal_value(value))

    def _parse_operands(self) -> Both:
        left = self._parse_part()
        is_and = self._skip(" and ")
        if not is_and:
            self._consume(" or ")
        right = self._parse_part()
        self._consume(")")
        if is_and:
            return left[0] & right[0], all_of([left[1], right[1]])
        return left[0] | right[0], any_of([left[1], right[1]])

    def _parse_null_test(self, name: str) -> Both:
        column, _ = self._parse_column()
        theirs = _field(column)
        if name == "is_valid":
            self._consume(")")
            return theirs.is_valid(), col(list(column)).is_not_null()
        self._consume(", {nan_is_null=false})")
        return theirs.is_null(), col(list(column)).is_null()

    def _parse_is_in(self) -> Both:
        """Parse a list of values in DuckDB's notation. The condition is null for null values."""
        column, field = self._parse_column()
        theirs = _field(column)
        match = _IS_IN.match(self._rest)
        if match is None:
            raise _UnsupportedTextError
        self._rest = self._rest[match.end() :]
        lines = [line.strip().removesuffix(",") for line in match[1].split("\n")]
        is_text = pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        scalars = [pa.scalar(line[1:-1], field.type) if is_text else _scalar(line, field.type) for line in lines]
        values = pa.array([item.as_py() for item in scalars], field.type)
        listed = pc.if_else(theirs.is_valid(), theirs.isin(values), pa.scalar(None, pa.bool_()))
        return listed, col(list(column)).isin([_literal_value(scalar) for scalar in scalars])

    def _parse_column(self) -> tuple[tuple[str, ...], pa.Field]:
        """Parse a column of the schema or a struct field. If several column names match, the longest name is used."""
        match = _NESTED.match(self._rest)
        if match is not None:
            self._rest = self._rest[match.end() :]
            path = tuple(re.findall(r"FieldRef\.Name\(([^()]*)\)", match[1]))
            field = self._schema.field(path[0])
            for name in path[1:]:
                field = field.type.field(name)
            return path, field
        ends = (" ", ")", ",")
        names = [name for name in self._schema.names if name and self._rest.startswith(tuple(name + e for e in ends))]
        name = max(names, key=len, default=None)
        if name is None:
            raise _UnsupportedTextError
        self._rest = self._rest[len(name) :]
        return (name,), self._schema.field(name)

    def _parse_literal(self, type: pa.DataType) -> pa.Scalar:
        """Parse a literal of the column's type."""
        types = pa.types
        if types.is_string(type) or types.is_large_string(type):
            match = re.match(r'"(?:[^"\\]|\\.)*"', self._rest, re.S)
            if match is None:
                raise _UnsupportedTextError
            self._rest = self._rest[match.end() :]
            return pa.scalar(json.loads(match[0], strict=False), type)
        match = re.match(r"[^()\"]+(?=\))", self._rest)
        if match is None:
            raise _UnsupportedTextError
        self._rest = self._rest[match.end() :]
        return _scalar(match[0], type)

    def _skip(self, text: str) -> bool:
        if not self._rest.startswith(text):
            return False
        self._rest = self._rest[len(text) :]
        return True

    def _consume(self, text: str) -> None:
        if not self._skip(text):
            raise _UnsupportedTextError


def _scalar(text: str, type: pa.DataType) -> pa.Scalar:
    """Parse a scalar of a type other than string."""
    types = pa.types
    if types.is_boolean(type):
        return pa.scalar({"true": True, "false": False}[text], type)
    if types.is_integer(type):
        return pa.scalar(int(text), type)
    if types.is_float32(type) or types.is_float64(type):
        return pa.scalar(float(text), type)
    if types.is_date32(type) or (types.is_timestamp(type) and type.unit != "ns"):
        return pc.cast(pa.scalar(text), type)
    raise _UnsupportedTextError


def _field(column: tuple[str, ...]) -> pc.Expression:
    return pc.field(*column) if len(column) > 1 else pc.field(column[0])


def _literal_value(value: pa.Scalar) -> Any:
    """Return the Python value of a literal. Raise an error for NaN, which pyarrow and pqext compare differently."""
    result = value.as_py()
    if isinstance(result, float) and math.isnan(result):
        raise _UnsupportedTextError
    return result


def conjuncts(condition: pc.Expression) -> list[pc.Expression]:
    """Split a condition into its conjuncts; return only the condition itself if it cannot be split."""
    try:
        make, (stored,) = condition.__reduce__()
        with pa.ipc.open_file(stored) as file:
            batch = file.get_batch(0)
        items = _metadata_items(batch.schema)
        if items[0] != _AND or not make(_replace_calls(batch, items)).equals(condition):
            return [condition]
        return [make(_replace_calls(batch, items[part.start : part.stop])) for part in _conjunct_ranges(items)]
    except (pa.ArrowException, ValueError, TypeError, IndexError, struct.error):  # an unsupported version of pyarrow
        return [condition]


def _conjunct_ranges(items: Items) -> list[range]:
    """Return the range of ``items`` that each conjunct occupies. Nested conjunctions are flattened."""
    results: list[range] = []
    opened: list[bool] = []
    at = 0
    while at < len(items):
        if all(opened) and items[at] == _AND:
            opened.append(True)
        elif all(opened) and items[at][0] == "end":
            opened.pop()
        else:
            stop = _argument_end(items, at)
            results.append(range(at, stop))
            at = stop
            continue
        at += 1
    return results


def _argument_end(items: Items, position: int) -> int:
    """Return the end of the argument that starts at ``position``."""
    type, value = items[position]
    if type == "nested_field_ref":
        return position + 1 + int(value)
    depth = 0
    while True:
        depth += (items[position][0] == "call") - (items[position][0] == "end")
        position += 1
        if not depth:
            return position


def _replace_calls(batch: pa.RecordBatch, items: Sequence[tuple[str, str]]) -> pa.Buffer:
    """Replace the metadata of ``batch`` with ``items``, and serialise the batch in pyarrow's format of expressions."""
    changed = batch.replace_schema_metadata(pa.KeyValueMetadata(items))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, changed.schema) as file:
        file.write_batch(changed)
    return sink.getvalue()


def _metadata_items(schema: pa.Schema) -> Items:
    """Return the metadata of a schema as pairs, including duplicate keys, which a Python dictionary would drop."""
    data = schema.serialize().to_pybytes()[8:]  # skip a marker and the length of the message

    def number(position: int, format: str = "<I") -> int:
        return int(struct.unpack_from(format, data, position)[0])

    def follow_offset(position: int) -> int:
        return position + number(position)

    def field(table: int, slot: int) -> int:
        offsets = table - number(table, "<i")
        return table + number(offsets + 4 + 2 * slot, "<H")

    def text(position: int) -> str:
        return bytes(data[position + 4 : position + 4 + number(position)]).decode()

    pairs = follow_offset(field(follow_offset(field(follow_offset(0), _HEADER)), _METADATA))
    tables = [follow_offset(pairs + 4 + 4 * item) for item in range(number(pairs))]
    return [(text(follow_offset(field(table, 0))), text(follow_offset(field(table, 1)))) for table in tables]
