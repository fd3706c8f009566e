"""What could be smaller in a file: only what its footer and the places of its pages prove."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pqext.core.arrow_schema.text import KEY
from pqext.inspection.model import Column, FileFacts, Part
from pqext.text import counted, shorten, size

_SMALL_FILE = 4 << 10
"""Of a file with fewer bytes nothing is worth a word."""
_TINY_GROUP = 1 << 20
_TINY_PAGE = 1 << 10
_NAMED = 3


def savings(facts: FileFacts, parts: tuple[Part, ...]) -> Iterator[str]:
    """A sentence for each thing that takes room, the surest first."""
    if facts.size < _SMALL_FILE:
        return
    columns = [column for group in facts.row_groups for column in group.columns if column.codec]
    yield from _codecs(columns)
    yield from _dictionaries(parts)
    yield from _pages(parts)
    yield from _row_groups(facts)
    yield from _footer(facts, parts)
    unknown = sum(part.length for part in parts if part.kind == "other")
    if unknown * 50 > facts.size:
        yield f"{size(unknown)} ({unknown / facts.size:.0%} of the file) are described by nothing that was looked at."


def _codecs(columns: list[Column]) -> Iterator[str]:
    plain: dict[str, int] = defaultdict(int)
    swollen: dict[str, int] = defaultdict(int)
    for column in columns:
        name = ".".join(column.path)
        if column.codec == "UNCOMPRESSED":
            plain[name] += column.compressed
        elif column.compressed > column.uncompressed >= 0:
            swollen[name] += column.compressed - column.uncompressed
    if sum(plain.values()) > 1 << 16:
        yield f"{size(sum(plain.values()))} are stored without compression: {_listed(plain)}."
    if sum(swollen.values()) > 1 << 10:
        yield (
            f"Compression adds {size(sum(swollen.values()))} where values do not compress: {_listed(swollen)}; "
            "uncompressed they would be smaller and faster to read."
        )


def _dictionaries(parts: tuple[Part, ...]) -> Iterator[str]:
    """Dictionaries that are larger than the pages which refer to them."""
    sums: dict[tuple[int | None, int | None], list[int]] = defaultdict(lambda: [0, 0])
    for part in parts:
        if part.kind in ("dictionary", "data"):
            sums[part.row_group, part.column][part.kind == "data"] += part.length
    large = [own for own, data in sums.values() if own > data > 0 and own > 1 << 14]
    if large:
        yield (
            f"{counted(len(large), 'column chunk')} hold a dictionary larger than the pages that use it, "
            f"{size(sum(large))} in all: most values occur once or twice, and a plain or delta encoding may be smaller."
        )


def _pages(parts: tuple[Part, ...]) -> Iterator[str]:
    counts: dict[tuple[int | None, int | None], int] = defaultdict(int)
    for part in parts:
        if part.kind == "data" and part.length < _TINY_PAGE:
            counts[part.row_group, part.column] += 1
    tiny = sum(count for count in counts.values() if count > 1)
    if tiny > 100:
        yield f"{tiny:,} data pages have less than 1 KiB beside others of their chunk: larger ones need fewer headers."


def _row_groups(facts: FileFacts) -> Iterator[str]:
    groups = facts.row_groups
    if len(groups) > 1 and sum(group.compressed for group in groups) < _TINY_GROUP * len(groups):
        mean = sum(group.compressed for group in groups) // len(groups)
        yield (
            f"{counted(len(groups), 'row group')} have {size(mean)} on average: fewer, larger ones need less of "
            "footer, dictionaries and indexes."
        )


def _footer(facts: FileFacts, parts: tuple[Part, ...]) -> Iterator[str]:
    footer = sum(part.length for part in parts if part.kind == "footer")
    if footer * 20 > facts.size:
        yield f"The footer takes {footer / facts.size:.0%} of the file, {size(footer)}."
    for key, value in facts.key_value_metadata:
        taken = len(value or "")
        if taken * 50 > facts.size:
            what = "The note of the Arrow schema" if key == KEY else f"The text under {shorten(key, 60)!r}"
            yield f"{what} takes {size(taken)} of the footer."


def _listed(sums: dict[str, int]) -> str:
    largest = sorted(sums, key=lambda name: -sums[name])
    told = ", ".join(f"{shorten(name, 60)} {size(sums[name])}" for name in largest[:_NAMED])
    more = len(largest) - _NAMED
    return f"{told} and {counted(more, 'other column')}" if more > 0 else told
