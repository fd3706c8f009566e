"""Rules and messages for faults that kernels detect in variant bytes and shredded columns."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple, NoReturn, TypeVar

from pqext.core.base.errors import LimitError, ParquetError, UnsupportedError, VariantError
from pqext.variant.kernels.binary import Fault
from pqext.variant.kernels.shredding import ShreddingFault

_RowError = TypeVar("_RowError", bound=UnsupportedError | VariantError)


class FaultMessage(NamedTuple):
    """Message for a fault, and the rule that the fault violates.

    ``rule`` is the id of the rule in the ledger. It is empty if the fault is not an encoding error.
    """

    rule: str
    message: str


MEANINGS: dict[int, FaultMessage] = {
    Fault.FAULT_ARROW: FaultMessage("", "the Arrow offsets of the array lie outside its data"),
    Fault.FAULT_METADATA_TRUNCATED: FaultMessage(
        "variant.metadata.layout", "the metadata ends before the end of its dictionary"
    ),
    Fault.FAULT_METADATA_VERSION: FaultMessage("variant.metadata.version", "the metadata's version is not 1"),
    Fault.FAULT_METADATA_OFFSETS: FaultMessage(
        "variant.metadata.offsets", "the dictionary's offsets do not ascend from 0 to the length of its strings"
    ),
    Fault.FAULT_METADATA_UTF8: FaultMessage("variant.utf8", "a dictionary string is not UTF-8"),
    Fault.FAULT_METADATA_ORDER: FaultMessage(
        "variant.metadata.sorted", "the dictionary is flagged as sorted but its strings are not sorted and unique"
    ),
    Fault.FAULT_METADATA_NULL: FaultMessage("variant.group.metadata", "the variant has no metadata"),
    Fault.FAULT_VALUE_TRUNCATED: FaultMessage("variant.value.layout", "the value is truncated"),
    Fault.FAULT_VALUE_TRAILING: FaultMessage("variant.value.layout", "bytes follow the end of the value"),
    Fault.FAULT_UNKNOWN_TYPE: FaultMessage("variant.version.new-types", "the value is of a primitive type added later"),
    Fault.FAULT_STRING_UTF8: FaultMessage("variant.utf8", "a string is not UTF-8"),
    Fault.FAULT_DECIMAL_SCALE: FaultMessage("variant.decimal.scale", "a decimal's scale is greater than 38"),
    Fault.FAULT_DECIMAL_PRECISION: FaultMessage(
        "variant.decimal.precision", "a decimal has more digits than its type allows"
    ),
    Fault.FAULT_NOT_CONTAINER: FaultMessage("", "the value is neither an object nor an array"),
    Fault.FAULT_TIME: FaultMessage("variant.time.range", "a time of day is not between 0 and 24 hours"),
    Fault.FAULT_VALUE_NULL: FaultMessage("variant.group.value", "the variant has no value"),
    Fault.FAULT_FIELD_ID: FaultMessage("variant.object.field-id", "a field id is not in the dictionary"),
    Fault.FAULT_FIELD_ORDER: FaultMessage(
        "variant.object.order", "an object's fields are not in the order of their names"
    ),
    Fault.FAULT_FIELD_DUPLICATE: FaultMessage("variant.object.unique", "an object has two fields of the same name"),
    Fault.FAULT_CHILD_OFFSET: FaultMessage("variant.container.offsets", "an element's offset lies outside the values"),
    Fault.FAULT_CHILD_SIZE: FaultMessage("variant.container.extent", "the elements overlap or leave gaps between them"),
    Fault.FAULT_DEPTH: FaultMessage("variant.depth", "the value is nested too deeply"),
    ShreddingFault.FAULT_BOTH: FaultMessage(
        "shredding.value.exclusive", "value and typed_value are both set for a value that is not an object"
    ),
    ShreddingFault.FAULT_NOT_OBJECT: FaultMessage(
        "shredding.object.residual-kind", "typed_value contains an object but its sibling value does not"
    ),
    ShreddingFault.FAULT_CONFLICT: FaultMessage(
        "shredding.object.disjoint", "a shredded field is also a field of the object in value"
    ),
    ShreddingFault.FAULT_MISSING_ELEMENT: FaultMessage(
        "shredding.array.present", "an array element has neither value nor typed_value"
    ),
    ShreddingFault.FAULT_OBJECT_RESIDUAL: FaultMessage(
        "shredding.object.typed", "value contains an object but its sibling typed_value group is null"
    ),
    ShreddingFault.FAULT_ARRAY_RESIDUAL: FaultMessage(
        "shredding.array.typed", "value contains an array but its sibling typed_value list is null"
    ),
    ShreddingFault.FAULT_NAME_MISSING: FaultMessage(
        "shredding.metadata.names", "the name of a shredded field is not in the metadata"
    ),
    ShreddingFault.FAULT_MISSING: FaultMessage(
        "shredding.value.missing", "neither value nor typed_value is set, which is valid only for shredded fields"
    ),
}


def error(status: int, *, row: int | None = None, offset: int | None = None) -> ParquetError | MemoryError:
    """Return the error for a kernel's ``status``. ``offset`` is the position in the value or metadata of ``row``."""
    if status == Fault.FAULT_MEMORY:
        return MemoryError("out of memory while processing variants")
    if status == ShreddingFault.FAULT_TOO_LARGE:
        return LimitError(f"row {row}: a column exceeds 2^31 - 1 bytes or elements; pass fewer rows at a time")
    meaning = MEANINGS[status]
    if status == Fault.FAULT_UNKNOWN_TYPE:
        location = f"row {row}: " if row is not None else ""
        unknown = UnsupportedError(f"{location}{meaning.message} ({meaning.rule})", feature="variant primitive type")
        unknown.row = row
        return unknown
    return VariantError(meaning.message, rule=meaning.rule or None, row=row, offset=offset)


def fail(status: int, *, row: int | None = None, offset: int | None = None) -> NoReturn:
    """Raise the error that :func:`error` returns for the same arguments."""
    raise error(status, row=row, offset=offset)


def shift_row(error: _RowError, rows: int) -> _RowError:
    """Return ``error`` with its row number increased by ``rows``, the position of a slice in the complete array."""
    if error.row is None or not rows:
        return error
    result = copy(error)
    result.row = error.row + rows
    result.message = f"row {result.row}: " + error.message.removeprefix(f"row {error.row}: ")
    result.args = (result.message,)
    return result
