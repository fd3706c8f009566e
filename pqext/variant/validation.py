"""Validate variant arrays against the rules of the binary encoding and of shredding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import VariantError
from pqext.core.base.text import escape_text
from pqext.core.base.threads import Workers, thread_count
from pqext.variant.coercion import as_variants
from pqext.variant.faults import MEANINGS, fail
from pqext.variant.kernels import validate as kernel
from pqext.variant.kernels.binary import BinaryInput, Fault, VariantInput
from pqext.variant.shredding.plan import CompiledSchema, compile_schema
from pqext.variant.shredding.reconstruct import open_columns
from pqext.variant.shredding.schema import Array, Object, schema_of_storage
from pqext.variant.types import VariantLike, child, is_variant_type, plain_binary, struct_chunks

DEFAULT_MAX_DEPTH = 1000
Mode = Literal["full", "fast"]
OnFault = Literal["return", "raise"]

RECORD = np.dtype(
    [("row", np.int64), ("offset", np.int64), ("node", np.int32), ("status", np.int32), ("part", np.int64)]
)
"""Record of a fault from the kernel."""
PARTS = ("metadata", "value", "typed_value", "residual")
_MOST = (1 << 63) - 1
_PIECES = 4
"""Number of chunks per thread, chosen so that no thread waits long for the others."""
_PIECE_ROWS = 1024


@dataclass(frozen=True, slots=True)
class VariantFault:
    """Fault of the variant in ``row`` of an array.

    ``part`` is ``"metadata"``, ``"value"`` or ``"typed_value"``, and ``column`` is the path of its column below the
    variant, such as ``typed_value.user.value``. ``offset`` is the byte offset in the part, or None if the fault has no
    position. For a shredded field that is also in its object's sibling value, ``part`` is ``"residual"`` and ``column``
    is the group of the field. ``rule`` is the id of the violated rule, or None if the format has no rule for it.
    """

    row: int
    part: str
    offset: int | None
    rule: str | None
    message: str
    column: str

    def __str__(self) -> str:
        rule = f" ({self.rule})" if self.rule else ""
        byte = f" byte {self.offset}" if self.offset is not None else ""
        return escape_text(f"row {self.row}, {self.column}{byte}: {self.message}{rule}")

    def error(self) -> VariantError:
        """Return the fault as an exception."""
        error = VariantError(self.message, rule=self.rule, row=self.row, offset=self.offset)
        error.locate(column=self.column)
        return error


def validate(
    array: VariantLike,
    mode: Mode = "full",
    *,
    max_depth: int = DEFAULT_MAX_DEPTH,
    allow_unknown: bool = True,
    on_fault: OnFault = "return",
    threads: int = 1,
) -> VariantFault | None:
    """Validate all metadata and values of a variant array, shredded or not.

    Returns the first fault, or None if the array is valid.

    ``mode="full"`` checks every byte: versions, offsets, ids and sizes; the order and uniqueness of names and fields;
    that children fill their containers exactly; that strings are UTF-8 and decimals and times within the range of their
    types; and that nesting is at most ``max_depth``. For shredded arrays, it also checks that ``value`` and
    ``typed_value`` are consistent: only one is set except for objects, no shredded field is in the residual, elements
    exist, and names of fields are in the metadata. ``mode="fast"`` checks headers only: the version and extent of the
    metadata, that the header, sizes and last offset of each value match its bytes, and, for shredded arrays, which of
    ``value`` and ``typed_value`` are set. Its time does not depend on the size of values.

    Primitive types that the format may add later are accepted unless ``allow_unknown`` is false. Reserved bits are
    ignored. Null rows are valid. With ``on_fault="raise"``, the first fault is raised as ``VariantError``. The rows are
    divided among ``threads`` threads, 0 for one per processor.

    Raises ``TypeError`` if the array is not a variant, and ``VariantError`` if its columns have an invalid layout.

    >>> import pyarrow
    >>> from pqext import variant
    >>> variant.validate(variant.parse_json(['{"id": 1}']))
    >>> truncated = {"metadata": bytes([1, 0, 0]), "value": bytes([12])}  # an int8 without its byte
    >>> print(variant.validate(pyarrow.array([truncated], variant.variant_type())))
    row 0, value byte 0: the value is truncated (variant.value.layout)
    """
    _check_arguments(mode, max_depth)
    if on_fault not in get_args(OnFault):
        raise ValueError(f"on_fault must be 'return' or 'raise', not {on_fault!r}")
    result = _find_first_fault(as_variants(array), mode, max_depth, allow_unknown, thread_count(threads))
    if result is not None and on_fault == "raise":
        raise result.error()
    return result


def find_faults(
    array: VariantLike,
    mode: Mode = "full",
    *,
    limit: int | None = None,
    max_depth: int = DEFAULT_MAX_DEPTH,
    allow_unknown: bool = True,
) -> pa.Table:
    """Return the first fault of every invalid row as a table: ``row``, ``column``, ``offset``, ``rule``, ``message``.

    ``offset`` is null if a fault has no position, and ``rule`` is null if the format has no rule for it. The table has
    at most ``limit`` rows. Other arguments and errors are as for :func:`validate`.

    >>> import pyarrow
    >>> from pqext import variant
    >>> truncated = {"metadata": bytes([1, 0, 0]), "value": bytes([12])}  # an int8 without its byte
    >>> variant.find_faults(pyarrow.array([None, truncated], variant.variant_type()))["row"].to_pylist()
    [1]
    """
    _check_arguments(mode, max_depth)
    if limit is not None and limit < 0:
        raise ValueError(f"limit must be 0 or more, not {limit}")
    most = _MOST if limit is None else limit
    tables = []
    start = 0
    for chunk, compiled in _compile(as_variants(array)):
        if most == 0:
            break
        records, _ = examine(
            chunk, compiled, mode, max_faults=most, stop_early=True, max_depth=max_depth, allow_unknown=allow_unknown
        )
        most -= len(records)
        tables.append(_fault_table(records, compiled, start))
        start += len(chunk)
    return pa.concat_tables(tables) if tables else _FAULTS.empty_table()


def examine(
    chunk: pa.StructArray,
    compiled_schema: CompiledSchema,
    mode: Mode = "full",
    *,
    max_faults: int = _MOST,
    stop_early: bool = False,
    first_only: bool = True,
    max_depth: int = DEFAULT_MAX_DEPTH,
    allow_unknown: bool = True,
) -> tuple[NDArray[np.void], dict[int, int]]:
    """Validate the variants in a storage struct.

    Returns the first ``max_faults`` faults as ``RECORD`` structs, and fault counts by status.

    ``first_only`` omits all but the first fault of a row. ``stop_early`` ends the validation after ``max_faults``
    faults.
    """
    metadata = child(chunk, "metadata")
    assert metadata is not None
    records, counts = kernel.examine(
        compiled_schema.plan, BinaryInput(plain_binary(metadata)), open_columns(chunk, compiled_schema),
        mode == "full", first_only, max_faults, stop_early, max_depth, allow_unknown,
    )
    return np.frombuffer(records, RECORD), counts


def column_paths(compiled_schema: CompiledSchema) -> list[str]:
    """Return the path of each node's group in the variant, such as ``typed_value.user``; empty for the root."""
    paths = [""] * len(compiled_schema.nodes)
    for index, node in enumerate(compiled_schema.nodes):  # parents precede their children
        typed = f"{paths[index]}.typed_value".lstrip(".")
        if isinstance(node.schema, Object):
            for number, (name, _) in zip(node.children, node.schema.fields, strict=True):
                paths[number] = f"{typed}.{name}"
        elif isinstance(node.schema, Array):
            paths[node.children[0]] = f"{typed}.list.element"
    return paths


def fault_column(path: str, part: int) -> str:
    """Return the column path to report for a fault in part number ``part`` of the group at ``path``.

    For metadata and residuals, this is the path of the group, or the name of the part if the group is the root.
    """
    if PARTS[part] in ("metadata", "residual"):
        return path or PARTS[part]
    return f"{path}.{PARTS[part]}".lstrip(".")


def _check_arguments(mode: str, max_depth: int) -> None:
    if mode not in get_args(Mode):
        raise ValueError(f"mode must be 'full' or 'fast', not {mode!r}")
    if not 0 < max_depth < 1 << 31:
        raise ValueError(f"max_depth must be positive and below 2^31, not {max_depth}")


def _compile(array: VariantLike) -> Iterator[tuple[pa.StructArray, CompiledSchema]]:
    chunks = struct_chunks(array)
    compiled = compile_schema(schema_of_storage(array.type))
    return ((chunk, compiled) for chunk in chunks)


def _find_first_fault(
    array: VariantLike, mode: Mode, max_depth: int, allow_unknown: bool, threads: int
) -> VariantFault | None:
    pieces = list(_iter_chunks(array, threads))
    whole = is_variant_type(array.type)

    def find_in_chunk(start: int, chunk: pa.StructArray, compiled_schema: CompiledSchema) -> VariantFault | None:
        if mode == "full" and whole:
            return _find_first_in_values(start, chunk, max_depth, allow_unknown)
        records, _ = examine(
            chunk, compiled_schema, mode, max_faults=1, stop_early=True, max_depth=max_depth,
            allow_unknown=allow_unknown,
        )
        for record in records[:1]:
            offset = int(record["offset"])
            return _create_fault(
                start + int(record["row"]), int(record["part"]), None if offset < 0 else offset,
                int(record["status"]), column_paths(compiled_schema)[record["node"]],
            )
        return None

    with Workers(threads, len(pieces)) as workers:
        faults_in_order = workers.map(find_in_chunk, *zip(*pieces, strict=True)) if pieces else iter(())
        return next((result for result in faults_in_order if result is not None), None)


def _iter_chunks(array: VariantLike, threads: int) -> Iterator[tuple[int, pa.StructArray, CompiledSchema]]:
    """Yield the first row, the rows and the compiled schema of each chunk.

    Chunks are split if there are spare threads.
    """
    chunks = list(_compile(array))
    rows = sum(len(chunk) for chunk, _ in chunks)
    most = max(rows, 1) if threads == 1 else max(_PIECE_ROWS, -(-rows // (_PIECES * threads)))
    start = 0
    for chunk, compiled in chunks:
        for at in range(0, len(chunk), most):
            yield start + at, chunk[at : at + most], compiled
        start += len(chunk)


def _find_first_in_values(
    start: int, chunk: pa.StructArray, max_depth: int, allow_unknown: bool
) -> VariantFault | None:
    result = kernel.first_fault(VariantInput(chunk), max_depth, allow_unknown)
    if result is None:
        return None
    status, row, offset, in_metadata = result
    if status == Fault.FAULT_MEMORY:
        fail(status)
    return _create_fault(start + row, 0 if in_metadata else 1, offset, status, "")


def _create_fault(row: int, part: int, offset: int | None, status: int, path: str) -> VariantFault:
    meaning = MEANINGS[status]
    return VariantFault(row, PARTS[part], offset, meaning.rule or None, meaning.message, fault_column(path, part))


_FAULTS = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False), pa.field("column", pa.string(), nullable=False),
        ("offset", pa.int64()), ("rule", pa.string()), pa.field("message", pa.string(), nullable=False),
    ]
)


def _fault_table(records: NDArray[np.void], compiled_schema: CompiledSchema, start: int) -> pa.Table:
    paths = column_paths(compiled_schema)
    columns = pa.array([fault_column(path, part) for path in paths for part in range(len(PARTS))])
    statuses, kinds = np.unique(records["status"], return_inverse=True)
    meanings = [MEANINGS[int(status)] for status in statuses]
    offsets = records["offset"]
    place = records["node"].astype(np.int64) * len(PARTS) + records["part"]
    return pa.Table.from_arrays(
        [
            pa.array(records["row"] + start), columns.take(pa.array(place)),
            pa.array(offsets, mask=offsets < 0),
            pa.array([meaning.rule or None for meaning in meanings], pa.string()).take(pa.array(kinds)),
            pa.array([meaning.message for meaning in meanings], pa.string()).take(pa.array(kinds)),
        ],
        schema=_FAULTS,
    )
