"""Seeds for the variant targets: values of every type and layout, and rows of shredded columns."""

from __future__ import annotations

from collections.abc import Iterator

from variant_targets import SCHEMAS

from reference import variant_value as reference

DOCUMENT = (
    "object",
    {
        "": ("null", None),
        "a": ("object", {"b": ("array", [("object", {"c": ("decimal4", (150, 2))}), ("true", None)])}),
        "b": ("string", "text"), "c": ("time_ntz", 5),
    },
)  # fmt: skip
VALUES: dict[str, reference.Value] = {
    "document": DOCUMENT,
    "int8": ("int8", -1), "int16": ("int16", 300), "int32": ("int32", 70_000), "int64": ("int64", 1 << 40),
    "double": ("double", 1.5), "float": ("float", 0.5), "decimal8": ("decimal8", (10**12, 3)),
    "decimal16": ("decimal16", (-(10**30), 38)), "date": ("date", 9), "timestamp": ("timestamp", 1),
    "timestamp_ntz": ("timestamp_ntz", 1), "timestamp_nanos": ("timestamp_nanos", 1),
    "timestamp_ntz_nanos": ("timestamp_ntz_nanos", 1), "binary": ("binary", b"\xff\0"), "uuid": ("uuid", bytes(16)),
    "string": ("string", "é" * 40), "array": ("array", [("null", None), ("array", []), ("object", {})]),
    "wide": ("array", [("int8", 1)] * 300), "deep": ("array", [("array", [("array", [("array", [])])])]),
}  # fmt: skip
LAYOUTS = {
    "narrow": reference.Layout(),
    "wide": reference.Layout(metadata_size=4, id_size=4, offset_size=4, large=True, long_strings=True, reserved=True),
    "unsorted": reference.Layout(sorted_dictionary=False, extra_names=("unused",), backwards=True),
}


def variants() -> Iterator[tuple[str, bytes]]:
    """Yield every value in every layout, with the schemas in rotation."""
    number = 0
    for name, value in VALUES.items():
        for name_of_layout, layout in LAYOUTS.items():
            metadata, encoded = reference.encode(value, layout)
            head = bytes([number % len(SCHEMAS)]) + len(metadata).to_bytes(2, "little")
            yield f"{name} {name_of_layout}", head + metadata + encoded
            number += 1


def rows() -> Iterator[tuple[str, bytes]]:
    """Yield rows without values, with residuals, with typed values and with both, for each schema."""
    names = reference.encode_metadata(["", "a", "b", "c"], True)
    inner = bytes([len(names)]) + names
    for schema in range(len(SCHEMAS)):
        for name, columns in {
            "missing": b"\0",
            "residual": b"\5\0",
            "typed": b"\2" + b"\2\1\2\1" * 12,
            "both": b"\7\0" + b"\3\0\1" * 9,
            "object": bytes([0x2B]) + b"\2\1\1\0\2\5b\x0c\1\0" + b"\2\1" * 8,
        }.items():
            yield f"{schema} {name}", bytes([schema]) + (inner + columns) * 2
