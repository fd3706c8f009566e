"""Bounds of VARIANT paths in the logs of tables, decoded for many files at once."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pqext import variant
from pqext.tables import variant_paths
from pqext.tables.variant_paths import path_ranges

A, B, NESTED = ("a",), ("b",), ("n", "x")
PATHS = {A, B, NESTED}


def bound(values: dict[str, Any], padding: int = 0) -> bytes:
    item = variant.from_python([values])[0].as_py()
    return bytes(item["metadata"] + item["value"] + bytes(padding))


def decoded(*bounds: tuple[bytes | None, bytes | None]) -> list[dict[tuple[str, ...], tuple[Any, Any, Any]]]:
    return [
        {path: (each.type, each.bounds.minimum, each.bounds.maximum) for path, each in ranges.items()}
        for ranges in path_ranges(bounds, PATHS)
    ]


def test_each_file_has_its_own_bounds() -> None:
    files = [
        (bound({"$['a']": n, "$['n']['x']": f"t{n}"}, n % 4), bound({"$['a']": n + 9, "$['n']['x']": f"u{n}"}, n % 3))
        for n in range(200)
    ]
    expected = [
        {A: (pa.int64(), n, n + 9), NESTED: (pa.string(), f"t{n}".encode(), f"u{n}".encode())} for n in range(200)
    ]
    assert decoded(*files) == expected


def test_files_with_other_paths_and_types_are_decoded_beside_each_other() -> None:
    other, large = {"$['b']": Decimal("1.50")}, {"$['a']": 2**40, "$['b']": True}
    wide = {f"$['k{n}']": n for n in range(300)}
    files = [
        (bound({"$['a']": 1}), bound({"$['a']": 300})), (bound(other), bound(other)), (bound(large), bound(large)),
        (bound(wide | {"$['b']": 2.5}), bound({"$['b']": 7.25})), (bound({}), bound({})),
    ]  # fmt: skip
    assert decoded(*files) == [
        {A: (pa.int64(), 1, 300)}, {B: (pa.decimal128(38, 2), Decimal("1.50"), Decimal("1.50"))},
        {A: (pa.int64(), 2**40, 2**40), B: (pa.bool_(), True, True)}, {B: (pa.float64(), 2.5, 7.25)}, {},
    ]  # fmt: skip


@pytest.mark.parametrize(("low", "high"), [
    (bound({"$['a']": 1}), None), (None, bound({"$['a']": 1})), (bound({"$['a']": 1}), bound({"$['a']": "x"})),
    (bound({"$['a']": 1}), bound({"$['b']": 1})), (bound({"$['a']": None}), bound({"$['a']": None})),
    (bound({"$['a']": 1}).replace(b"\x0c\x01", b"\x7c\x01"), bound({"$['a']": 1})),  # a type that does not exist
    (b"", b""), (b"\xff" * 9, b"\xff" * 9), (bound({"$['a']": 5})[:-1], bound({"$['a']": 5})),
    (bound({"$['a']": {"x": 1}}), bound({"$['a']": {"x": 1}})), (bound({"$['a']": [1]}), bound({"$['a']": [1]})),
])  # fmt: skip
def test_paths_without_valid_bounds_are_omitted_and_others_are_not(low: bytes | None, high: bytes | None) -> None:
    valid = (bound({"$['a']": 1}), bound({"$['a']": 4}))
    range_of_a = {A: (pa.int64(), 1, 4)}
    assert decoded(valid, (low, high), valid) == [range_of_a, {}, range_of_a]


def test_bound_that_is_nan_is_unknown() -> None:
    nan, one = (bound({"$['a']": value}) for value in (float("nan"), 1.0))
    assert decoded((nan, one), (one, nan)) == [{A: (pa.float64(), None, 1.0)}, {A: (pa.float64(), 1.0, None)}]


def test_keys_that_are_not_paths_or_not_requested_are_ignored() -> None:
    values = {"a": 1, "$['a'": 2, "$['c']": 3, "$['a'][0]": 4, "$": 5}
    assert decoded((bound(values), bound(values))) == [{}]
    assert decoded((bound(values | {"$.a": 6}), bound(values | {"$.a": 6}))) == [{A: (pa.int64(), 6, 6)}]


def test_long_metadata_of_many_files_is_not_copied_for_all_files_together(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    original = variant_paths.extract

    def record_size(array: Any, *arguments: Any) -> Any:
        sizes.append(array.storage.nbytes if isinstance(array, pa.ExtensionArray) else array.nbytes)
        return original(array, *arguments)

    monkeypatch.setattr(variant_paths, "extract", record_size)
    names = {f"$['{'k' * 20_000}{n}']": n for n in range(20)}  # 400 kB
    files = [(bound(names | {"$['a']": n}), bound(names | {"$['a']": n + 1})) for n in range(100)]
    files[40] = files[40][0], files[40][1][:-2]
    expected = [{A: (pa.int64(), n, n + 1)} for n in range(100)]
    expected[40] = {}
    assert decoded(*files) == expected
    assert max(sizes) <= 17 << 20
