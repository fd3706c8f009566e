"""Headers of pages that recovery believes, and chunks that it takes for those of the file."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.format.metadata import ColumnChunk, DataPageHeaderV2, Encoding, PageHeader, PageType
from pqext.core.io.source import MemorySource
from pqext.recovery.detection.pages import _entries_and_encoding
from pqext.recovery.evidence import _locate

SOUND: dict[str, int] = {
    "num_values": 10, "num_nulls": 4, "num_rows": 10, "definition_levels_byte_length": 3,
    "repetition_levels_byte_length": 2,
}  # fmt: skip


def header(sizes: tuple[int, int] = (40, 40), **changes: int) -> PageHeader:
    about = DataPageHeaderV2(encoding=Encoding.PLAIN, **(SOUND | changes))
    return PageHeader(
        type=PageType.DATA_PAGE_V2, uncompressed_page_size=sizes[0], compressed_page_size=sizes[1],
        data_page_header_v2=about,
    )


def test_plausible_header_states_entries_and_encoding() -> None:
    for is_told in (False, True):
        assert _entries_and_encoding(header(), in_footer=is_told) == (10, int(Encoding.PLAIN))
        assert _entries_and_encoding(header((5, 5)), in_footer=is_told) == (10, int(Encoding.PLAIN))


@pytest.mark.parametrize("sizes", [(4, 40), (40, 4)])
def test_levels_longer_than_their_page_are_not_a_page(sizes: tuple[int, int]) -> None:
    for is_told in (False, True):
        assert _entries_and_encoding(header(sizes), in_footer=is_told) is None


@pytest.mark.parametrize("changes", [{"num_nulls": 11}, {"num_nulls": -2}, {"num_rows": 11}, {"num_rows": -1}])
def test_wrong_header_counts_are_accepted_only_for_pages_in_a_footer(changes: dict[str, int]) -> None:
    assert _entries_and_encoding(header(**changes), in_footer=False) is None
    assert _entries_and_encoding(header(**changes), in_footer=True) == (10, int(Encoding.PLAIN))


@pytest.mark.parametrize("changes", [{}, {"file_path": "other.parquet"}])
def test_chunk_in_another_file_has_no_pages(changes: dict[str, Any]) -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"c": [1, 2]}), out)
    with pqext.open(out.getvalue()) as file:
        chunk: ColumnChunk = file.metadata.row_groups[0].columns[0]
    for name, value in changes.items():
        setattr(chunk, name, value)
    found = _locate(MemorySource(out.getvalue()), chunk, [0], DEFAULT_LIMITS)
    assert (found is None) == bool(changes)
