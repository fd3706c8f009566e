"""Selection of the column chunks that checks decode: every byte range once, within a budget of values."""

from __future__ import annotations

from contextlib import suppress

from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.footer.chunk_offsets import ChunkRanges
from pqext.core.read.reader import ParquetFile, RowGroup
from pqext.core.schema.shape import Shape
from pqext.verification.model import Fault, Findings

_DENSE = 64
"""Values for each stored byte of a chunk; chunks with more of them count in the budget."""


class ChunkSelection:
    """Chunks of ``file`` that checks decode.

    Chunks that begin where another chunk begins are not decoded again: the overlap is a fault already. Chunks that
    state very many values in few bytes are decoded while all of them together, over all row groups, state no more
    values than the limits allow bytes. The rest is reported as not checked.
    """

    def __init__(self, file: ParquetFile, findings: Findings) -> None:
        self._room = file.limits.memory_for(file.source.size)
        self._findings = findings
        places = ChunkRanges(file.metadata, file.footer.offset)
        _report_overlaps(file, places, findings)
        self._repeated = places.repeated_starts
        self._dense: dict[tuple[int, int], bool] = {}

    def includes(self, group: RowGroup, shape: Shape) -> bool:
        """Whether the chunks of ``group`` at or below ``shape`` are decoded."""
        return all(self._includes(group, leaf.node.leaf_start, leaf.node.dotted) for leaf in shape.leaves())

    def _includes(self, group: RowGroup, leaf: int, column: str) -> bool:
        place = group.index, leaf
        if place in self._repeated:
            return False
        known = self._dense.get(place)
        if known is None:
            known = self._dense[place] = self._fits(group, leaf)
        if not known:
            reason = "its row groups state more values in few bytes than the limit memory_bytes allows"
            self._findings.skip(column, None, reason)
        return known

    def _fits(self, group: RowGroup, leaf: int) -> bool:
        """Whether the budget has room for a chunk, which is counted then."""
        with suppress(CorruptFileError, UnsupportedError, IndexError):  # reported by the checks
            about = group.metadata.columns[leaf].meta_data
            if about is not None:
                values = max(about.num_values, group.num_rows)
                if values > _DENSE * max(about.total_compressed_size, 0):
                    if values > self._room:
                        return False
                    self._room -= values
        return True


def _report_overlaps(file: ParquetFile, places: ChunkRanges, findings: Findings) -> None:
    """Report column chunks that share bytes, row groups that share all their bytes once for all of them."""
    names = [leaf.dotted for leaf in file.schema.leaves]
    for (group, leaf), (other_group, other) in places.shared():
        if max(leaf, other) < len(names):
            message = f"the footer has it share bytes with {names[other]} in row group {other_group}"
            findings.add(Fault("layout.chunks-apart", message, group, column=names[leaf]))
    for first, repeated in places.repeated_groups().items():
        count = f"{len(repeated)} more row groups" if len(repeated) > 1 else "one more row group"
        message = f"the footer has {count} lie where this one does, row group {repeated[0]} first"
        findings.add(Fault("layout.chunks-apart", message, first))
