"""What inspection tells of a footer and of the jump table in it."""

from pathlib import Path

import pyarrow as pa
import pytest

import pqext
from pqext.inspection import inspect
from pqext.inspection.rendering import render


def _file(path: Path, **options: object) -> bytes:
    pqext.write_table(pa.table({f"c{at}": [at] for at in range(50)}), path, **options)
    return path.read_bytes()


def test_offset_and_size_of_the_footer_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    data = _file(path)
    footer = inspect(path).footer
    assert footer.length == int.from_bytes(data[-8:-4], "little")
    assert footer.offset + footer.length + 8 == len(data)
    assert (footer.jump_table, footer.agrees, footer.encrypted) == (None, None, False)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("place", [None, -60, -9 - 16 - 4])
def test_jump_table_is_reported_with_its_consistency(tmp_path: Path, place: int | None) -> None:
    path = tmp_path / "t.parquet"
    data = bytearray(_file(path, footer="thrift+index"))
    if place is not None:
        data[place] ^= 1
        path.write_bytes(data)
    footer = inspect(path).footer
    assert footer.agrees is (place is None) or footer.jump_table is None
    assert (footer.jump_table is not None) or place is not None
    assert next(iter(render(inspect(path)))) is not None
    assert inspect(path).to_dict()["footer"]["length"] == footer.length
