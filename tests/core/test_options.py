"""Options that cannot be meant are refused when they are given."""

from __future__ import annotations

from typing import Any

import pytest

from pqext.core.options import WriteOptions


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("compression", 5),
        ("compression", None),
        ("compression", ["zstd"]),
        ("dictionary", "x"),
        ("dictionary", None),
        ("shredding", "infer"),
        ("geometry", 5),
        ("key_value_metadata", None),
    ],
)
def test_an_option_of_the_wrong_type_is_named(option: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{option} cannot be a"):
        WriteOptions(**{option: value})
