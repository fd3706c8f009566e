"""The shredded cases of parquet-testing: every one gives its value, or the error it is published for."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from variant_cases import FOLDER, KNOWN, all_cases, may_fail, must_fail

import pqext
from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.variant.shredding.schema import schema_of_storage, storage_struct
from reference import variant_shred as reference

CASES = all_cases()
pytestmark = pytest.mark.skipif(not CASES, reason="PARQUET_TEST_DATA does not name the parquet-testing folder")

# Invalid, but readable: the shredded columns are right (the cases' own notes).
CONTRADICTORY = {
    43: "shredding.object.disjoint",
    84: "shredding.layout.required",
    125: "shredding.object.disjoint",
}
INVALID = {
    87: "shredding.object.residual-kind",
    128: "shredding.object.residual-kind",
    137: "shredding.types",
}


def column(case: dict[str, Any]) -> pa.ChunkedArray:
    return pq.read_table(FOLDER / case["parquet_file"])["var"]


def numbered(numbers: Any) -> list[Any]:
    return [pytest.param(case, id=str(case["case_number"])) for case in CASES if case["case_number"] in numbers]


REFUSED = {case["case_number"] for case in CASES if must_fail(case)}
LABELLED = {case["case_number"] for case in CASES if may_fail(case) and not must_fail(case)}
VALID = numbered(({case["case_number"] for case in CASES} - REFUSED - LABELLED) | (LABELLED & KNOWN))


def expected(case: dict[str, Any]) -> list[tuple[bytes, bytes] | None]:
    rows: list[tuple[bytes, bytes] | None] = []
    for name in files_of(case):
        if name is None:
            rows.append(None)
            continue
        data = (FOLDER / name).read_bytes()
        size = (data[0] >> 6) + 1
        count = int.from_bytes(data[1 : 1 + size], "little")
        end = 1 + size * (count + 2)
        end += int.from_bytes(data[end - size : end], "little")
        rows.append((data[:end], data[end:]))
    return rows


@pytest.mark.parametrize("case", VALID)
@pytest.mark.spec("shredding.reconstruct.required", "shredding.reconstruct.algorithm", "shredding.nesting")
def test_case_reconstructs_to_its_value(case: dict[str, Any]) -> None:
    rebuilt = variant.unshred(column(case)).to_pylist()
    wanted = expected(case)
    assert [row and (row["metadata"], row["value"]) for row in rebuilt] == wanted


CONSISTENT = numbered({case["case_number"] for case in CASES} - REFUSED - LABELLED)


@pytest.mark.parametrize("case", numbered(LABELLED))
@pytest.mark.parametrize("strict", [False, True])
def test_optional_case_is_rejected_or_returns_its_value(case: dict[str, Any], strict: bool) -> None:
    try:
        rebuilt = read(case, strict=strict).to_pylist()
    except VariantError:
        return
    assert [row and (row["metadata"], row["value"]) for row in rebuilt] == expected(case)


@pytest.mark.parametrize("case", CONSISTENT)
def test_case_shreds_into_its_own_columns(case: dict[str, Any]) -> None:
    stored = column(case)
    schema = schema_of_storage(stored.type)
    again = variant.shred(variant.unshred(stored), schema)
    assert again.type == storage_struct(schema)
    for before, after in zip(expected(case), variant.unshred(again, strict=True).to_pylist(), strict=True):
        if before is None:
            assert after is None
            continue
        names = reference.decode_metadata(before[0])
        assert reference.equivalent(reference.decode(after["value"], names)) == reference.equivalent(
            reference.decode(before[1], names)
        )


@pytest.mark.parametrize("case", numbered(CONTRADICTORY))
@pytest.mark.spec("shredding.object.conflict")
def test_inconsistent_case_is_rejected_on_request(case: dict[str, Any]) -> None:
    with pytest.raises(VariantError) as caught:
        variant.unshred(column(case), strict=True)
    assert caught.value.rule == CONTRADICTORY[case["case_number"]]


@pytest.mark.parametrize("case", numbered(REFUSED))
def test_invalid_case_is_rejected(case: dict[str, Any]) -> None:
    with pytest.raises(VariantError) as caught:
        variant.unshred(column(case))
    assert caught.value.rule == INVALID.get(case["case_number"], caught.value.rule)


def read(case: dict[str, Any], **options: Any) -> pa.ChunkedArray:
    return pqext.read_table(FOLDER / case["parquet_file"], **options)["var"]


@pytest.mark.parametrize("case", VALID)
@pytest.mark.spec("variant.group.annotation")
def test_file_is_read_as_its_value(case: dict[str, Any]) -> None:
    strict = case["case_number"] not in CONTRADICTORY
    assert [row and (row["metadata"], row["value"]) for row in read(case, strict=strict).to_pylist()] == expected(case)
    kept = read(case, strict=strict, shredded=True)
    assert variant.to_json(kept).to_pylist() == variant.to_json(read(case)).to_pylist()


@pytest.mark.parametrize("shredded", [False, True])
@pytest.mark.parametrize("case", numbered(CONTRADICTORY))
@pytest.mark.spec("shredding.object.conflict")
def test_inconsistent_file_is_rejected_by_strict_reading(case: dict[str, Any], shredded: bool) -> None:
    with pytest.raises(VariantError) as caught:
        read(case, strict=True, shredded=shredded)
    assert caught.value.rule == CONTRADICTORY[case["case_number"]]
    assert (caught.value.column, caught.value.path) == ("var", str(FOLDER / case["parquet_file"]))


@pytest.mark.parametrize("case", numbered(REFUSED))
def test_file_of_an_invalid_case_is_never_read(case: dict[str, Any]) -> None:
    with pytest.raises(VariantError) as caught:
        read(case)
    assert (caught.value.rule, caught.value.column) == (INVALID.get(case["case_number"], caught.value.rule), "var")


def test_expectations_agree_with_cases_json() -> None:
    there = {case["case_number"] for case in CASES}
    assert set(INVALID) & there <= REFUSED
    assert set(CONTRADICTORY) & there <= LABELLED
    assert {number for number in REFUSED if number in KNOWN} <= set(INVALID)


def test_every_file_and_every_case_is_checked() -> None:
    judged = {name for case in CASES if not must_fail(case) for name in files_of(case) if name is not None}
    judged |= {case["parquet_file"] for case in CASES}
    assert {path.name for path in FOLDER.iterdir() if path.suffix in (".parquet", ".bin")} - judged == set()


def files_of(case: dict[str, Any]) -> list[str | None]:
    return case["variant_files"] if "variant_files" in case else [case["variant_file"]]
