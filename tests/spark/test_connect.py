"""On Spark Connect, shredding is chosen, explained and followed as on Classic."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from spark.sessions import QUICK_JAVA

pytest.importorskip("grpc_status", reason="Spark Connect needs grpcio-status (extra 'test')")

STEPS = Path(__file__).parent / "connect_steps.py"


@pytest.mark.slow
def test_choice_reaches_the_sink_over_connect(tmp_path: Path) -> None:
    (tmp_path / "in.ndjson").write_text('{"a": 1}\n{"a": 2}\n')
    run = subprocess.run(
        [sys.executable, str(STEPS), str(tmp_path)], env=os.environ | QUICK_JAVA,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout.splitlines()[-1])
    assert found.pop("type").startswith("pyspark.sql.connect")
    for message in (found.pop("explained"), found.pop("saved")):
        assert "the metadata 'pqext:shredding' of column 'v' is invalid: '{' is not JSON" in message
    assert "cannot run this read: on Spark Connect the client does not plan reads" in found.pop("native")
    type_error = found.pop("type error")
    assert "[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE]" in type_error
    assert "to_json takes VARIANT, or a struct of metadata and value, but id is int: parse JSON text" in type_error
    unknown = found.pop("unknown")
    assert "the user-defined type of a column cannot be imported (No module named 'no_module')" in unknown
    assert found == {
        "unregistered": 2,
        "kept": {"w": "STRUCT<a: INT>", "l.list.element": "None"},
        "lost": [],
        "once": "STRUCT<a: BIGINT, b: STRING>",
        "plan": [
            "v: shredded as STRUCT<a: INT> (shred_variant)",
            "l.list.element: shredded by a schema inferred from each file's first row group (shred_variant)",
        ],
        "stored": ["STRUCT<a: INT>", "STRUCT<a: BIGINT, b: STRING>"],
        "rows": [0, 1, 2, 3, 4],
        "count": 2,
        "where": [[3, 4], [1, 2], [4], [4], [1]],
        "pushed": ["id > 2", "id in (1, 2)", "id == 4", "(v[$.a: int] > 2 and not (id == 3))", "v[$.a: int] == 1"],
        "structs": [0, 1, 2, 3, 4],
        "removed": [],
        "unselected": [2],
    }
