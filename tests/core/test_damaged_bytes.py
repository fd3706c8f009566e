"""A small file cut at any byte, or with any byte changed: the right result or a typed error, in bounded memory.

The files are damaged in a process of its own whose address space may grow by ``CAP`` bytes. By default every
11th byte is tried, and all of them where the environment variable PQEXT_EVERY_BYTE is set (two minutes).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from core import damaged_bytes
from core.damaged_bytes import FILES, everything, written

import pqext
from pqext.core.base.errors import EncryptionError, ParquetError
from pqext.core.base.limits import Limits
from pqext.core.io.source import Span
from pqext.core.read.pages import page
from reference.pace import FEW_THREADS, SLOWER

CAP = 256 << 20
"""Bytes of address space beyond what the process has after its imports and the first reading of the files."""
SECONDS = 2.0
"""Processor time of the slowest read; the files have some kilobytes."""
STRIDE = 1 if os.environ.get("PQEXT_EVERY_BYTE") else 11


Outcomes = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    """What came of every damaged copy, by file and way. A crash or a hang fails here."""
    command = [sys.executable, damaged_bytes.__file__, str(STRIDE), str(CAP)]
    paths = [str(Path(pqext.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, **FEW_THREADS, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=environment, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    last = [(line["file"], line["mode"]) for line in lines[-1:]]
    assert done.returncode == 0, f"behind {last}: {done.stderr[-2000:]}"
    return {(line["file"], line["mode"]): line for line in lines}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_file_truncated_at_any_byte_is_rejected(name: str, outcomes: Outcomes) -> None:
    found = outcomes[name, "cut"]
    assert found["unexpected"] == []
    assert set(found["counts"]) <= {"CorruptFileError"}
    assert sum(found["counts"].values()) >= found["bytes"] // STRIDE
    assert found["slowest"] < SECONDS * SLOWER


@pytest.mark.parametrize("name", FILES)
def test_file_with_any_byte_changed_is_read_or_rejected(name: str, outcomes: Outcomes) -> None:
    found = outcomes[name, "flip"]
    assert found["unexpected"] == []
    assert sum(found["counts"].values()) >= found["bytes"] // STRIDE
    assert found["slowest"] < SECONDS * SLOWER


def bodies(data: bytes) -> Iterator[range]:
    """The places of all page bodies."""
    with pqext.open(data) as file:
        for group in file.row_groups:
            for chunk in group.chunks():
                start, length = chunk.byte_range
                at = list(page.raw_pages(Span(file.source, start, length), Limits()))
                ends = [*(raw.offset for raw in at[1:]), start + length]
                for raw, end in zip(at, ends, strict=True):
                    yield range(end - len(raw.body), end)


@pytest.mark.parametrize("name", ["plain", "dictionary", "page index"])
def test_changed_byte_in_a_page_with_checksum_is_always_detected(name: str) -> None:
    data = written(name)
    places = [at for body in bodies(data) for at in body][:: max(STRIDE // 3, 1)]
    assert len(places) > 5
    for at in places:
        with pytest.raises(pqext.CorruptFileError, match="checksum"):
            everything(damaged_bytes.damaged(data, "flip", at), encrypted=False)


@pytest.mark.parametrize("name", ["encrypted", "encrypted, signed footer"])
def test_changed_byte_in_an_encrypted_file_never_changes_values(name: str, outcomes: Outcomes) -> None:
    found = outcomes[name, "flip"]
    assert found["unexpected"] == []
    assert set(found["counts"]) <= {"EncryptionError", "CorruptFileError", "LimitError", "UnsupportedError", "equal"}


def test_comparison_table_was_written_to_the_file() -> None:
    for name, (table, _) in FILES.items():
        found = everything(written(name), encrypted="encrypted" in name)
        assert isinstance(found, pa.Table)
        assert found.column_names == table.column_names
        assert found.to_pylist() == table.to_pylist()
    assert issubclass(EncryptionError, ParquetError)
