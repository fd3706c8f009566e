"""The files of parquet-testing/bad_data: each gives its own error, or the right result where it is not bad after all.

The files themselves are not part of this project. Those that a copy lacks are laid out by hand here from what the
folder's README says of them, so that every kind of damage is tested either way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core import raw_files
from core.raw_files import OPTIONAL, REPEATED, REQUIRED, Column

import pqext
from pqext.core.base.errors import CorruptDataWarning, CorruptFileError, ParquetError, UnsupportedError
from pqext.core.format.metadata import ConvertedType, DictionaryPageHeader, PageHeader, PageType
from pqext.core.format.thrift import encode
from reference import values


@dataclass(frozen=True)
class Fault:
    """What reading a whole file raises, with words of its message and the column that it names."""

    error: type[ParquetError]
    message: str
    column: str


FAULTS: dict[str, Fault | None] = {
    # Its pages call themselves index pages, which would be passed over: the column would have no values.
    "ARROW-GH-41317.parquet": Fault(CorruptFileError, "data page header declares page type 1", "timestamp_us_no_tz"),
    "ARROW-GH-41321.parquet": Fault(CorruptFileError, "", ""),
    "ARROW-GH-43605.parquet": None,
    "ARROW-GH-45185.parquet": Fault(CorruptFileError, "", ""),
    "ARROW-GH-47662.parquet": Fault(
        CorruptFileError, "a page of 364 bytes cannot hold 100 values of 4 bytes", "flba_field"
    ),
    "ARROW-RS-GH-6229-DICTHEADER.parquet": Fault(CorruptFileError, "a page of -", ""),
    "ARROW-RS-GH-6229-LEVELS.parquet": Fault(
        CorruptFileError, "pages have more values than the column chunk declares", "outer.list.item.c"
    ),
    "PARQUET-1481.parquet": Fault(UnsupportedError, "Handle has unknown physical type -7", "Handle"),
}
"""Every file that the folder has had, with its fault; ``None`` for one that reads."""


@pytest.fixture(scope="module")
def folder(parquet_testing: Path) -> Path:
    return parquet_testing / "bad_data"


@pytest.mark.filterwarnings("ignore::pqext.core.base.errors.AnnotationWarning")
def test_unlisted_file_is_rejected_or_read_like_pyarrow(folder: Path) -> None:
    found = sorted(folder.rglob("*.parquet"))
    assert found, f"{folder} is empty"
    for path in found:
        if path.name in FAULTS:
            continue
        ours = refusal = None
        try:
            ours = pqext.read_table(path)
        except ParquetError as error:
            refusal = error
        if ours is None:
            assert refusal is not None
            assert refusal.path == str(path)
            continue
        assert values.columns(ours) == values.columns(pq.ParquetFile(path).read()), path
        if path.parent.name == "variants":
            assert _is_refused_by_value(path), f"nothing is found wrong with the variants of {path}"


def _is_refused_by_value(path: Path) -> bool:
    try:
        for column in pqext.read_table(path).columns:
            if pa.types.is_struct(column.type):
                pqext.variant.to_json(column)
    except ParquetError:
        return True
    return not pqext.verify(path).ok


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault is not None])
@pytest.mark.parametrize("options", [{}, {"checksums": False}, {"threads": 1}], ids=str)
def test_bad_file_raises_its_error(folder: Path, name: str, options: dict[str, object]) -> None:
    path, fault = folder / name, FAULTS[name]
    if not path.exists():
        pytest.skip(f"{name} is not in this copy of parquet-testing; a file with its fault is laid out below")
    assert fault is not None
    with pytest.raises(fault.error) as caught:
        pqext.read_table(path, **options)
    assert type(caught.value) is fault.error
    assert fault.message in caught.value.message
    assert fault.column in (caught.value.column or "")
    assert caught.value.path == str(path)


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault is not None])
def test_bad_file_returns_no_wrong_rows_on_skip(folder: Path, name: str) -> None:
    path, fault = folder / name, FAULTS[name]
    if not path.exists():
        pytest.skip(f"{name} is not in this copy of parquet-testing")
    assert fault is not None
    if fault.error is not CorruptFileError:
        with pytest.raises(fault.error):
            pqext.read_table(path, on_corrupt="skip")
        return
    with pytest.warns(CorruptDataWarning):
        assert len(pqext.read_table(path, on_corrupt="skip")) == 0


def test_zero_width_runs_repeat_the_first_dictionary_entry(folder: Path) -> None:
    path = folder / "ARROW-GH-43605.parquet"
    if not path.exists():
        pytest.skip("ARROW-GH-43605.parquet is not in this copy of parquet-testing")
    table = pqext.read_table(path)
    assert table.equals(pq.read_table(path).cast(table.schema))
    assert table["min_fl"].to_pylist() == [0] * 21_186


def test_intact_columns_next_to_a_short_column_are_read(folder: Path) -> None:
    path = folder / "ARROW-GH-41317.parquet"
    if not path.exists():
        pytest.skip("ARROW-GH-41317.parquet is not in this copy of parquet-testing")
    with pqext.open(path) as file, pq.ParquetFile(path) as theirs:
        # The metadata of the second row group lacks a required field: pyarrow lets it pass, which we do not.
        names = [name for name in file.arrow_schema.names if name != "timestamp_us_no_tz"]
        assert len(names) == 79
        ours = file.read(names, row_groups=[0])
        assert [field.name for field in ours.schema] == names
        judged = 0
        for name in names:
            try:
                expected = theirs.read_row_group(0, [name])[name]
            except (pa.ArrowException, OSError):
                continue
            assert ours[name].to_pylist() == expected.to_pylist(), name
            judged += 1
        assert judged == 79
        with pytest.raises(CorruptFileError, match=r"ColumnMetaData.encodings: a required field is missing"):
            file.read(names, row_groups=[1])


def dictionary_of_negative_size() -> bytes:
    header = encode(
        PageHeader(
            type=PageType.DICTIONARY_PAGE, uncompressed_page_size=4, compressed_page_size=4,
            dictionary_page_header=DictionaryPageHeader(num_values=-1, encoding=0),
        )
    )
    data = raw_files.write([raw_files.leaf("c", REQUIRED)], [Column(raw_files.int32(1, 2, 3, 4, 5, 6, 7, 8), 8)], 8)
    return data[:4] + (header + bytes(4)).ljust(len(header) + 4, b"\0") + data[4 + len(header) + 4 :]


def levels(repetition: list[int], definition: list[int], entries: int, rows: int) -> bytes:
    elements = [
        raw_files.group("l", OPTIONAL, 1, converted_type=ConvertedType.LIST),
        raw_files.group("list", REPEATED, 1),
        raw_files.leaf("element", OPTIONAL),
    ]
    values = raw_files.int32(*range(definition.count(3)))
    return raw_files.write(elements, [Column(values, entries, definition, repetition)], rows)


LAID_OUT: dict[str, tuple[Callable[[], bytes], Fault]] = {
    "ARROW-RS-GH-6229-DICTHEADER.parquet": (
        dictionary_of_negative_size, Fault(CorruptFileError, "a page declares a negative value count: -1", "c"),
    ),
    "ARROW-GH-41321.parquet, repetition levels": (
        lambda: levels([0, 1], [3, 3, 3, 3], 4, 1), Fault(CorruptFileError, "ends before", "l.list.element"),
    ),
    "ARROW-GH-41321.parquet, definition levels": (
        lambda: levels([0, 1, 1, 1], [3, 3], 4, 1), Fault(CorruptFileError, "ends before", "l.list.element"),
    ),
    "ARROW-GH-41321.parquet, no values": (
        lambda: levels([0, 0], [0, 0], 100, 2), Fault(CorruptFileError, "ends before", "l.list.element"),
    ),
    "ARROW-GH-45185.parquet": (
        lambda: levels([1, 0, 1], [3, 3, 3], 3, 2),
        Fault(CorruptFileError, "a list element precedes the first list", "l"),
    ),
    "ARROW-GH-45185.parquet, one row": (
        lambda: levels([1, 1], [3, 3], 2, 1), Fault(CorruptFileError, "", "l"),
    ),
    "ARROW-RS-GH-6229-LEVELS.parquet": (
        lambda: levels([0], [3], 1, 3), Fault(CorruptFileError, "fewer rows than its row group", "l.list.element"),
    ),
}


@pytest.mark.parametrize("name", LAID_OUT)
def test_file_with_the_same_defect_is_rejected(name: str) -> None:
    make, fault = LAID_OUT[name]
    data = make()
    with pytest.raises(fault.error) as caught:
        pqext.read_table(data)
    assert fault.message in caught.value.message
    assert (caught.value.column or "").startswith(fault.column)
    with pytest.warns(CorruptDataWarning):
        assert len(pqext.read_table(data, on_corrupt="skip")) == 0
