"""Top-level Arrow columns of a row group as leaf columns: stored form first, then levels and dense values."""

from __future__ import annotations

import pyarrow as pa

from pqext.core.base.errors import LimitError
from pqext.core.options.read_write import WriteOptions
from pqext.core.schema.annotations import Notes
from pqext.core.schema.shape import Shape
from pqext.core.write import storage
from pqext.core.write.disassemble import DenseColumn, disassemble, full_leaf
from pqext.core.write.storage import StoredField
from pqext.core.write.stored_arrow_schema import dictionaries

TOO_DEEP = "the schema nests deeper than Python's stack lets it be followed"


class DenseColumns:
    """Takes columns apart; ``unbounded`` names those whose dictionaries together outgrew their index type."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self.unbounded: set[str] = set()

    def leaves(self, field: StoredField, top: Shape, column: pa.ChunkedArray) -> list[DenseColumn]:
        """The leaf columns of one top-level column."""
        try:
            array = self._combined(field, column)
            if field.is_stored_as_given and not array.null_count:
                return [full_leaf(top, array)]
            notes = Notes()
            leaves = list(disassemble(top, self._stored(field, array, notes)))
            if isinstance(array, pa.Array):
                for leaf, encoded in zip(leaves, dictionaries(field, array), strict=True):
                    leaf.encoded = encoded
        except pa.ArrowInvalid as error:
            if "overflow" not in str(error):
                raise
            raise LimitError(storage.TOO_MUCH, column=top.node.dotted) from error
        except RecursionError:
            raise LimitError(TOO_DEEP, column=field.field.name) from None
        for leaf in leaves:
            leaf.notes = notes
        return leaves

    def _combined(self, field: StoredField, column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """One array, or chunks whose dictionaries have more entries together than the index type counts."""
        if column.num_chunks == 1:
            return column.chunk(0)
        try:
            return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        except pa.ArrowInvalid:
            self.unbounded.add(field.field.name)
            return column

    def _stored(self, field: StoredField, array: pa.Array | pa.ChunkedArray, notes: Notes) -> pa.Array:
        if isinstance(array, pa.ChunkedArray):  # the stored form has no dictionaries
            return pa.concat_arrays([field.store(chunk, self._options, notes) for chunk in array.chunks])
        return field.store(array, self._options, notes)
