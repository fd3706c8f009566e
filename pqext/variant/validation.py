"""Does a variant array keep every rule of the binary encoding?"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pqext.variant import faults
from pqext.variant.kernels.binary import Fault, VariantInput
from pqext.variant.kernels.validate import first_fault
from pqext.variant.types import VariantLike, is_variant_type, storage_type, struct_chunks

DEFAULT_MAX_DEPTH = 1000


@dataclass(frozen=True, slots=True)
class VariantFault:
    """The first fault of an array: ``offset`` counts bytes in the ``part``, ``"metadata"`` or ``"value"``, of ``row``.

    ``rule`` is the id of the broken rule in the ledger, None where the fault is not one of encoding.
    """

    row: int
    part: str
    offset: int
    rule: str | None
    message: str

    def __str__(self) -> str:
        rule = f" ({self.rule})" if self.rule else ""
        return f"row {self.row}, {self.part} byte {self.offset}: {self.message}{rule}"


def validate(
    array: VariantLike, *, max_depth: int = DEFAULT_MAX_DEPTH, allow_unknown: bool = True
) -> VariantFault | None:
    """Check all metadata and values of an unshredded variant array; None when nothing is wrong.

    Offsets, ids, sizes and the order and uniqueness of fields are checked, that children fill their
    containers exactly, that strings are UTF-8 and decimals within their types, and that nesting is at most
    ``max_depth``. Primitives of types that the format may add later pass unless ``allow_unknown`` is false.
    Reserved bits are ignored. Null rows are valid.

    Raises ``TypeError`` when the array is not an unshredded variant.
    """
    if not isinstance(array, pa.Array | pa.ChunkedArray):
        raise TypeError(f"expected a variant array, not {type(array).__name__}")
    if not is_variant_type(array.type):
        raise TypeError(f"expected struct<metadata: binary, value: binary>, not {storage_type(array.type)}")
    first = 0
    for chunk in struct_chunks(array):
        found = first_fault(VariantInput(chunk), max_depth, allow_unknown)
        if found is not None:
            status, row, offset, in_metadata = found
            if status == Fault.FAULT_MEMORY:
                faults.fail(status)
            meaning = faults.MEANINGS[status]
            part = "metadata" if in_metadata else "value"
            return VariantFault(first + row, part, offset, meaning.rule or None, meaning.message)
        first += len(chunk)
    return None
