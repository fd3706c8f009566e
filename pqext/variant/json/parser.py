"""Parse JSON into variant arrays, or directly into shredded arrays, according to options."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from pqext.core.base.errors import LimitError
from pqext.variant.json.faults import Found, row_error
from pqext.variant.kernels.binary import BinaryInput
from pqext.variant.kernels.json_parse import (
    Duplicates,
    JsonOptions,
    parse_column,
    parse_lines,
    shred_column,
    shred_lines,
)
from pqext.variant.shredding import faults as shredding_faults
from pqext.variant.shredding.plan import CompiledSchema, compile_schema
from pqext.variant.shredding.schema import ShreddingSchema, Untyped, storage_struct
from pqext.variant.shredding.shredder import COERCE, Coerce, build_binary, build_storage
from pqext.variant.types import VariantLike, variant_array, variant_type

if TYPE_CHECKING:
    from pqext.variant.shredding.choice import Shredding

Numbers = Literal["decimal", "double"]
OnError = Literal["raise", "null"]
DuplicateKeys = Literal["error", "first", "last"]

DEFAULT_MAX_DEPTH = 1000
"""Maximum nesting of objects and arrays in a JSON document, as in Spark."""
DEFAULT_MAX_BYTES = 128 << 20
"""Maximum length of a JSON document; Spark does not support larger VARIANT values."""
LARGEST_BYTES = (1 << 31) - (1 << 16)
"""Maximum value of ``max_bytes``."""

_DUPLICATES = {
    "error": Duplicates.DUPLICATES_ERROR,
    "first": Duplicates.DUPLICATES_FIRST,
    "last": Duplicates.DUPLICATES_LAST,
}


@dataclass(frozen=True, slots=True)
class Parsing:
    """Options of JSON parsing, and the shredding schema, if any."""

    options: JsonOptions
    raises: bool
    max_bytes: int
    schema: CompiledSchema | None = None
    coerce: int = 0
    undecided: Shredding | None = None
    """Shredding whose schema must be chosen before parsing."""

    def with_inferred_schema(self, sample: VariantLike) -> Parsing:
        """Return options with a schema chosen from ``sample``, or unchanged if the schema is known."""
        if self.undecided is None:
            return self
        return _with_schema(replace(self, undecided=None), self.undecided.schema_for(sample), self.undecided.coerce)

    def for_samples(self) -> Parsing:
        """Return options for parsing samples: without shredding, and with null for faulty documents."""
        return Parsing(self.options.tolerant(), False, self.max_bytes)

    @property
    def type(self) -> pa.StructType:
        """Arrow type of the result."""
        return variant_type() if self.schema is None else storage_struct(self.schema.nodes[0].schema)

    def rows(self, column: BinaryInput, start: int, stop: int, first_row: int = 0) -> list[pa.StructArray]:
        """Parse rows ``start`` to ``stop`` of a column of texts.

        ``first_row`` is the number of the column's first row in messages.

        Returns several arrays if 32-bit offsets do not suffice for one. Raises ``VariantError`` for a faulty row unless
        ``on_error`` is ``"null"``.
        """
        arrays = []
        result: Any
        while True:
            if self.schema is None:
                result = parse_column(column, start, stop, self.options, _seed())
                array, value, after, _ = _build_result(result)
            else:
                result = shred_column(column, start, stop, self.schema.plan, self.coerce, self.options, _seed())
                if len(result) == 3:
                    raise shredding_faults.error(result[0], row=first_row + result[1])
                array, value, _ = _build_shredded_result(result, self.schema)
                after = stop
            if value and self.raises:
                raise row_error(value[0], first_row)
            arrays.append(array)
            if after >= stop:
                return arrays
            if after == start:
                raise LimitError(f"row {first_row + start}: the variant exceeds 2 GiB")
            start = after

    def documents(self, texts: pa.Array) -> tuple[list[pa.StructArray], list[Found]]:
        """Parse a column of texts; return the variants and the faults. Parsing stops after a fault if ``raises``."""
        column = BinaryInput(texts)
        arrays, faults = [], []
        result: Any
        start = 0
        while start < len(texts):
            if self.schema is None:
                result = parse_column(column, start, len(texts), self.options, _seed())
                array, value, after, _ = _build_result(result)
            else:
                result = shred_column(column, start, len(texts), self.schema.plan, self.coerce, self.options, _seed())
                if len(result) == 3:
                    raise shredding_faults.error(result[0], row=result[1])
                array, value, _ = _build_shredded_result(result, self.schema)
                after = len(texts)
            arrays.append(array)
            faults += value
            if value and self.raises:
                break
            if after == start:
                raise LimitError(f"document {start}: the variant exceeds 2 GiB")
            start = after
        return arrays, faults

    def lines(self, text: memoryview) -> tuple[list[pa.StructArray], list[Found], int]:
        """Parse ``text``, one document per line; return the variants, the faults, and the number of lines parsed."""
        if self.schema is not None:
            result: Any = shred_lines(text, 1, self.schema.plan, self.coerce, self.options, _seed())
            if len(result) == 3:
                raise LimitError(f"line {result[2]}: a column exceeds 2^31 - 1 bytes; parse fewer lines at a time")
            array, value, line = _build_shredded_result(result, self.schema)
            return [array], value, line - 1
        arrays, faults, start, line = [], [], 0, 1
        while True:
            array, value, after, line = _build_result(parse_lines(text, start, line, self.options, _seed()))
            arrays.append(array)
            faults += value
            if after >= len(text) or (value and self.raises):
                return arrays, faults, line - 1
            if after == start:
                raise LimitError(f"line {line}: the variant exceeds 2 GiB")
            start = after


def parsing(
    numbers: str, on_error: str, duplicate_keys: str, max_depth: int, max_bytes: int, shredding: Any = None
) -> Parsing:
    """Validate the arguments shared by all JSON parsers.

    Raises ``ValueError`` or ``TypeError`` if an argument is invalid.
    """
    if numbers not in ("decimal", "double"):
        raise ValueError(f"numbers must be 'decimal' or 'double', not {numbers!r}")
    if on_error not in ("raise", "null"):
        raise ValueError(f"on_error must be 'raise' or 'null', not {on_error!r}")
    if duplicate_keys not in _DUPLICATES:
        raise ValueError(f"duplicate_keys must be 'error', 'first' or 'last', not {duplicate_keys!r}")
    if not 0 <= max_depth <= 1_000_000:
        raise ValueError(f"max_depth must be between 0 and 1,000,000, not {max_depth}")
    if not 1 <= max_bytes <= LARGEST_BYTES:
        raise ValueError(f"max_bytes must be between 1 and {LARGEST_BYTES:,}, not {max_bytes}")
    options = JsonOptions(max_depth, max_bytes, _DUPLICATES[duplicate_keys], numbers == "double", on_error == "raise")
    result = Parsing(options, on_error == "raise", max_bytes)
    if shredding is None:
        return result
    from pqext.variant.shredding import choice

    selected = choice.shredding(shredding, "json")
    if selected.schema is None:
        return replace(result, undecided=selected)
    return _with_schema(result, selected.schema, selected.coerce)


def _with_schema(base: Parsing, schema: ShreddingSchema, coerce: Coerce) -> Parsing:
    if isinstance(schema, Untyped):
        return base
    return replace(base, schema=compile_schema(schema), coerce=COERCE[coerce])


def _seed() -> int:
    """Return a secret seed for hashing keys, which prevents deliberate collisions."""
    return secrets.randbits(64)


def _build_result(result: Any) -> tuple[pa.StructArray, list[Found], int, int]:
    if isinstance(result, int):
        raise shredding_faults.error(result)
    rows, nulls, validity, metadata_offsets, metadata, value_offsets, value, match, after, line = result
    array = variant_array(
        build_binary(pa.binary(), rows, metadata_offsets, metadata),
        build_binary(pa.binary(), rows, value_offsets, value),
        pa.py_buffer(validity) if nulls else None,
    )
    return array, match, after, line


def _build_shredded_result(result: Any, schema: CompiledSchema) -> tuple[pa.StructArray, list[Found], int]:
    rows, nulls, value, line, validity, metadata_offsets, metadata, columns = result
    array = build_storage(schema, build_binary(pa.binary(), rows, metadata_offsets, metadata), columns, validity, nulls)
    return array, value, line


def join_arrays(arrays: list[pa.StructArray], type: pa.DataType) -> pa.StructArray:
    """Concatenate all rows into one array. Raises ``LimitError`` if 32-bit offsets do not suffice."""
    if len(arrays) == 1:
        return arrays[0]
    if not arrays:
        return pa.array([], type)
    try:
        return pa.concat_arrays(arrays)
    except pa.ArrowInvalid as error:
        raise LimitError("the variants exceed 2 GiB: parse fewer rows at a time, or a chunked array") from error
