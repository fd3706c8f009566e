"""Remedies for the faults that a verification reports, by rule."""

from __future__ import annotations

_RESHRED = (
    "rewrite the file with `pqext reshred IN OUT` or `pqext unshred IN OUT`: typed_value takes precedence, "
    "as it does for readers of a single column"
)
_SCHEMA = "the schema is wrong, not a row: write the file again from its source, with groups and types as specified"

_WRONG = (
    "readers that rely on {} lose rows. If the values are corrupt instead (only checksums can show it), read with "
    "trust_statistics=False; `pqext repair IN OUT` relies on the values"
)
_MISLED = "readers that plan by these counts, sizes or encodings may fail or lose rows: `pqext repair` fixes the file"
_LOST = (
    "fetch the file again; else `pqext repair IN OUT` preserves intact data, as on_corrupt=\"skip\" reads it, and "
    "`pqext recover IN -o OUT` preserves more if bytes are missing"
)
_BOXES = _WRONG.format("these statistics")
_NO_ORDER = "readers that rely on these bounds may lose rows; pqext never does: write the file again without them"

ADVICE: tuple[tuple[str, str], ...] = (
    ("layout.footer-lost", "the file is truncated, or its start or end was overwritten: fetch it again, or write "
                           "the remaining rows with `pqext recover FILE -o OUT`"),
    ("layout.file-metadata", "the footer contradicts itself: write the file again with another writer"),
    ("extension.jump-table.", "reads through the jump table may be wrong: `pqext rewrite-footer FILE` drops it"),
    ("extension.flatbuffers.", "the two footers differ, or one is corrupt: `pqext rewrite-footer FILE --footer "
                               "thrift+flatbuffers` rebuilds both from the footer that pqext reads"),
    ("page.crc", "the bytes changed after they were written: fetch the file again; else `pqext repair IN OUT` "
                 'preserves the rows around the damage, as on_corrupt="skip" reads them'),
    ("page.v2.counts", _MISLED),
    ("page.v2.levels", _LOST),
    ("layout.page-lost", _LOST),
    ("layout.chunk-lost", _LOST),
    ("layout.chunks-apart", _LOST),
    ("statistics.sizes", _MISLED),
    ("page-index.histograms", _MISLED),
    ("layout.chunk-encoding", _MISLED),
    ("layout.offsets", _MISLED),
    ("statistics.", _WRONG.format("these statistics")),
    ("page-index.", _WRONG.format("this index")),
    ("logical.decimal.byte-array", "pyarrow fails on empty decimals, DuckDB, polars and pqext read them as zero: "
                                   "`pqext repair IN OUT` writes zeros"),
    ("logical.json", "readers that parse the column fail on these values: write the rows again, or the column as text"),
    ("sorting.", "readers that rely on the sort keys may skip or merge rows wrongly: sort the rows, or write the file "
                 "again without sort keys"),
    ("bloom.", _WRONG.format("this filter")),
    ("shredding.value.exclusive", _RESHRED),
    ("shredding.object.disjoint", _RESHRED),
    ("shredding.object.typed", _RESHRED),
    ("shredding.array.typed", _RESHRED),
    ("shredding.array.present", "rewrite the file with `pqext reshred IN OUT`: missing elements become variant nulls"),
    ("shredding.value.missing", "rewrite the file with `pqext reshred IN OUT`: missing values become variant nulls"),
    ("shredding.metadata.names", "rewrite the file with `pqext reshred IN OUT`: the metadata gets the missing names"),
    ("shredding.object.residual-kind", "value and typed_value contradict each other and neither is known to be right: "
                                       "write these rows again from their source"),
    ("shredding.layout", _SCHEMA),
    ("shredding.types", _SCHEMA),
    ("shredding.array.list", _SCHEMA),
    ("shredding.object", _SCHEMA),
    ("variant.group", _SCHEMA),
    ("variant.version", _SCHEMA),
    ("geo.box", _BOXES),
    ("geo.page_boxes", _BOXES),
    ("geo.types", _BOXES),
    ("geometry.order", _NO_ORDER),
    ("geography.order", _NO_ORDER),
    ("geography.crs", "write the column as GEOMETRY, or transform it to longitudes and latitudes first"),
    ("geo", "these geometries were written incorrectly: write the rows again from their source"),
    ("variant.", "these values were written incorrectly: write the rows again from their source; "
                 "`pqext reshred --invalid-values null` makes them null and preserves the others"),
)  # fmt: skip
"""Rule prefixes with their remedies; the first matching prefix applies."""
