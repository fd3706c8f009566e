"""Select the column chunks that checks decode: each byte range only once, and within a budget of values."""

from __future__ import annotations

from contextlib import suppress

from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.base.progress import Steps
from pqext.core.footer.chunk_offsets import ChunkRanges
from pqext.core.read.reader import ParquetFile, RowGroup
from pqext.core.schema.shape import Shape
from pqext.verification.report import Fault, Findings

_DENSE = 64
"""Minimum ratio of values to stored bytes of a chunk that is charged to the budget."""


class ChunkSelection:
    """Selection of the column chunks that checks decode.

    Chunks that start at the same byte as another chunk are not decoded again, because the overlap is already a fault.
    Chunks with very many values in few bytes are decoded as long as their total number of values, over all row groups,
    does not exceed the number of bytes that the limits allow. Other chunks of this type are reported as unchecked.
    ``steps`` counts the chunks that checks reach.
    """

    def __init__(self, file: ParquetFile, findings: Findings, steps: Steps) -> None:
        self._steps = steps
        self._budget = file.limits.max_memory_bytes(file.source.size)
        self._findings = findings
        offsets = ChunkRanges(file.metadata, file.footer.offset)
        _report_overlaps(file, offsets, findings)
        self._repeated = offsets.repeated_starts
        self._dense: dict[tuple[int, int], bool] = {}

    def includes(self, group: RowGroup, shape: Shape) -> bool:
        """Return whether to decode the chunks of ``group`` at or below ``shape``. Each chunk counts as a step."""
        leaves = list(shape.leaves())
        self._steps.advance(len(leaves))
        return all(self._includes_chunk(group, leaf.node.leaf_start, leaf.node.dotted_path) for leaf in leaves)

    def _includes_chunk(self, group: RowGroup, leaf: int, column: str) -> bool:
        key = group.index, leaf
        if key in self._repeated:
            return False
        included = self._dense.get(key)
        if included is None:
            included = self._dense[key] = self._charge_budget(group, leaf)
        if not included:
            reason = "its row groups state more values in few bytes than the limit memory_bytes allows"
            self._findings.skip(column, None, reason)
        return included

    def _charge_budget(self, group: RowGroup, leaf: int) -> bool:
        """Charge the budget for a chunk with many values in few bytes. Return False if the budget is exceeded."""
        with suppress(CorruptFileError, UnsupportedError, IndexError):  # reported by the checks
            about = group.metadata.columns[leaf].meta_data
            if about is not None:
                values = max(about.num_values, group.num_rows)
                if values > _DENSE * max(about.total_compressed_size, 0):
                    if values > self._budget:
                        return False
                    self._budget -= values
        return True


def _report_overlaps(file: ParquetFile, offsets: ChunkRanges, findings: Findings) -> None:
    """Report column chunks that share bytes. Row groups with identical byte ranges are reported as one fault."""
    names = [leaf.dotted_path for leaf in file.schema.leaves]
    for (group, leaf), (other_group, other) in offsets.iter_overlaps():
        if max(leaf, other) < len(names):
            message = f"the column chunk shares bytes with {names[other]} in row group {other_group}"
            findings.add(Fault("layout.chunks-apart", message, group, column=names[leaf]))
    for first, repeated in offsets.repeated_groups().items():
        count = f"{len(repeated)} more row groups" if len(repeated) > 1 else "one more row group"
        message = f"{count} share the bytes of this row group, row group {repeated[0]} first"
        findings.add(Fault("layout.chunks-apart", message, first))
