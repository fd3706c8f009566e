"""Members of JSON statistics in the log of a Delta table, compared with the json module."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pqext import tables
from pqext.tables.delta.log_statistics import json_members

MEMBERS = {("minValues", "a", "v"): pa.string(), ("maxValues", "v"): pa.string(), ("names",): pa.list_(pa.string())}
VALID = [
    json.dumps({"minValues": {"a": {"v": f"low {n}"}, "id": n}, "maxValues": {"v": f"high é {n}"}, "names": ["x", "y"]})
    for n in range(300)
]


def expected(texts: list[str | None]) -> list[list[Any]]:
    """The members by the json module, which accepts what Arrow rejects."""
    rows = []
    for text in texts:
        value = None if text is None else json.loads(text)
        value = value if isinstance(value, dict) else {}
        low = (value.get("minValues") or {}).get("a")
        low = low.get("v") if isinstance(low, dict) else None
        high, names = (value.get("maxValues") or {}).get("v"), value.get("names")
        has_names = isinstance(names, list) and all(isinstance(name, str) for name in names)
        names = names if has_names else None
        rows.append([low if isinstance(low, str) else None, high if isinstance(high, str) else None, names])
    return [[*column] for column in zip(*rows, strict=True)]


@pytest.mark.parametrize(
    "text",
    [
        None, "{}", "null", "[1]", '{"minValues": null}', '{"minValues": {"a": 5}, "maxValues": {"v": "k"}}',
        '{"maxValues": {"v": 1}}', '{"maxValues": {"v": "a"}, "maxValues": {"v": "b"}}',
        '{"maxValues": {"v": "\\ud800"}}',
        '{"x": NaN, "y": 1e999, "maxValues": {"v": "k"}}', '{"maxValues":\n{"v": "k"}}\n', ' {"maxValues": {"v": "k"}}',
        json.dumps({"maxValues": {"v": "k" * 3_000_000}}), json.dumps({"maxValues": {"v": "\x00é𝄞"}}), '{"names": []}',
        '{"names": ["x", null]}', '{"names": ["x", 1]}', '{"names": {"x": "y"}}',
    ],
)  # fmt: skip
def test_members_equal_those_of_the_json_module(text: str | None) -> None:
    texts = [*VALID[:7], text, *VALID[7:]]
    assert json_members(texts, MEMBERS) == expected(texts)
    assert json_members([text], MEMBERS) == expected([text])


@pytest.mark.parametrize("text", ["", "{", '{"maxValues": {"v": "k"}', "{}{}", "{} x", "{}\n{}", "[" * 100_000])
def test_invalid_text_has_no_members_and_leaves_those_of_other_files(text: str) -> None:
    assert json_members([VALID[0], text, VALID[1]], MEMBERS) == expected([VALID[0], None, VALID[1]])


def test_no_texts_have_no_members() -> None:
    assert json_members([], MEMBERS) == [[], [], []]
    assert json_members(VALID, {}) == []


def test_deep_statistics_of_one_file_do_not_stop_a_recluster(tmp_path: Path) -> None:
    """Python's JSON parser raises RecursionError for deep objects, which deltalake and Arrow accept."""
    for values in ([1, 3], [2]):
        tables.append(f"delta:{tmp_path}", pa.table({"x": values}))
    deep = '{"a": ' * 100_000 + "1" + "}" * 100_000
    log = tmp_path / "_delta_log/00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["stats"] = f'{action["add"]["stats"][:-1]}, "deep": {deep}}}'
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    tables.recluster(f"delta:{tmp_path}", ["x"])
    assert pa.table(DeltaTable(str(tmp_path)).scan())["x"].to_pylist() == [1, 2, 3]
