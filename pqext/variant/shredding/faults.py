"""Rules and messages for faults of shredded columns."""

from __future__ import annotations

from pqext.core.base.errors import LimitError, ParquetError, VariantError
from pqext.variant import faults
from pqext.variant.faults import Meaning
from pqext.variant.kernels.shredding import ShreddingFault

MEANINGS: dict[int, Meaning] = {
    ShreddingFault.FAULT_BOTH: Meaning(
        "shredding.value.exclusive", "value and typed_value are both set for a value that is not an object"
    ),
    ShreddingFault.FAULT_NOT_OBJECT: Meaning(
        "shredding.object.residual-kind", "typed_value holds an object but its sibling value does not"
    ),
    ShreddingFault.FAULT_CONFLICT: Meaning(
        "shredding.object.disjoint", "a shredded field is also in the object in value"
    ),
    ShreddingFault.FAULT_MISSING_ELEMENT: Meaning(
        "shredding.array.present", "an array element has neither value nor typed_value"
    ),
    ShreddingFault.FAULT_OBJECT_RESIDUAL: Meaning(
        "shredding.object.typed", "value holds an object but its sibling typed_value group is null"
    ),
    ShreddingFault.FAULT_ARRAY_RESIDUAL: Meaning(
        "shredding.array.typed", "value holds an array but its sibling typed_value list is null"
    ),
    ShreddingFault.FAULT_NAME_MISSING: Meaning(
        "shredding.metadata.names", "the name of a shredded field is not in the metadata"
    ),
    ShreddingFault.FAULT_MISSING: Meaning(
        "shredding.value.missing", "neither value nor typed_value is set, which only a shredded field may do"
    ),
}


def error(status: int, *, row: int | None = None, offset: int | None = None) -> ParquetError | MemoryError:
    """Return the error for a kernel's ``status``, at ``offset`` in the value of ``row``."""
    if status == ShreddingFault.FAULT_TOO_LARGE:
        return LimitError(f"row {row}: a column exceeds 2^31 - 1 bytes or elements; pass fewer rows at a time")
    if status not in MEANINGS:
        return faults.error(status, row=row, offset=offset)
    meaning = MEANINGS[status]
    return VariantError(meaning.message, rule=meaning.rule, row=row, offset=offset)


def shift_row(error: VariantError, rows: int) -> VariantError:
    """Return ``error`` with its row number shifted by ``rows``, from a slice to the complete array."""
    if error.row is None or not rows:
        return error
    reason = error.message.removeprefix(f"row {error.row}: ").removesuffix(f" ({error.rule})")
    return VariantError(reason, rule=error.rule, row=error.row + rows, offset=error.offset)
