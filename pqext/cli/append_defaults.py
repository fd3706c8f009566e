"""Options of ``pqext convert --append`` that default to those of the existing file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pqext.core.base.text import visible

if TYPE_CHECKING:
    import pyarrow as pa

    from pqext.geo.types import GeospatialType
    from pqext.variant.shredding.schema import ShreddingSchema


@dataclass(frozen=True)
class Columns:
    """The columns of the file, by name: how VARIANTs are shredded, what geometries are, and the types of others."""

    shredding: Mapping[str, ShreddingSchema] = field(default_factory=dict)
    geometries: Mapping[str, GeospatialType] = field(default_factory=dict)
    types: Mapping[str, pa.DataType] = field(default_factory=dict)

    @property
    def variant(self) -> str | None:
        """The name of the only VARIANT column."""
        return next(iter(self.shredding)) if len(self.shredding) == 1 else None

    @property
    def geometry(self) -> GeospatialType | None:
        """What all geometry columns are; None where they differ or where there are none."""
        found = set(self.geometries.values())
        return found.pop() if len(found) == 1 else None

    def shredding_of(self, column: str, chosen: Any) -> Any:
        """How documents are shredded into ``column``, of which ``--shredding`` says ``chosen``.

        Raises ``ValueError`` where that is another schema than the file's.
        """
        from pqext.variant.shredding.choice import shredding
        from pqext.variant.shredding.schema import Untyped

        there = self.shredding.get(column)
        how = chosen.get(column, "infer") if isinstance(chosen, Mapping) else chosen
        if there is None:  # which the writer refuses, with the names of the columns
            return chosen
        wanted = shredding(Untyped() if how is None else how)
        if wanted.schema not in (None, there):
            raise ValueError(
                f"--shredding: column {visible(column)!r} is shredded otherwise in the file, by {visible(str(there))}: "
                "leave out --shredding, or reshred the file with pqext reshred"
            )
        return {column: replace(wanted, schema=there)}


def crs_and_edges(crs: str | None, edges: str | None, there: Columns | None) -> tuple[str | None, str]:
    """What geometries that are made are to be: by the options, else as those of the file, else planar in OGC:CRS84."""
    known = None if there is None else there.geometry
    if known is None:
        return crs, edges or "planar"
    return known.crs if crs is None else crs, edges or known.edges


def columns_of(path: Any) -> Columns | None:
    """The columns of the local file at ``path``; None where there is no file yet."""
    if not isinstance(path, str) or not os.path.isfile(path) or not os.path.getsize(path):
        return None
    import pyarrow as pa

    from pqext.core.read.reader import ParquetFile
    from pqext.geo.types import type_of
    from pqext.variant.shredding.file_schema import schema_of_file

    kinds = pa.types
    plain = (kinds.is_primitive, kinds.is_decimal, kinds.is_string, kinds.is_binary)
    with ParquetFile(path) as file:
        names = [node.name for node in file.schema.root.children if node.logical_name == "VARIANT"]
        fields = list(file.arrow_schema)
        return Columns(
            {name: schema_of_file(file, name) for name in names},
            {one.name: found for one in fields if (found := type_of(one)) is not None},
            {one.name: kind for one in fields if any(test(kind := _plain(one.type)) for test in plain)},
        )


def _plain(type: pa.DataType) -> pa.DataType:
    """The type in its plain layout, that of a dictionary's values for a dictionary."""
    import pyarrow as pa

    from pqext.core.write.table_inputs import plain_layout

    return plain_layout(type.value_type if pa.types.is_dictionary(type) else type)
