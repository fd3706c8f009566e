"""One Spark session for all Spark tests, and the sample they share."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")

from spark.sessions import QUICK_JAVA, QUICK_WORKERS, SPARK_4_1

_SOCKETS_LEFT_OPEN = r"ignore:unclosed <socket\.socket .*raddr=\('127\.0\.0\.1', \d+\)>:ResourceWarning"
"""Spark 4.1 leaves the sockets on which it collects rows to the garbage collector."""


def pytest_configure(config: pytest.Config) -> None:
    if SPARK_4_1:
        config.addinivalue_line("filterwarnings", _SOCKETS_LEFT_OPEN)


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that Spark starts in, from which it takes relative paths."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def spark(spark_folder: Path) -> Iterator[Any]:
    from pqext.spark import local_session

    with contextlib.chdir(spark_folder), pytest.MonkeyPatch.context() as patch:
        for name, value in (QUICK_JAVA | QUICK_WORKERS).items():
            patch.setenv(name, value)
        session = local_session("pqext tests", cores="local[2]", conf={"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def events() -> list[dict[str, Any]]:
    """The example's earthquakes as GeoJSON features."""
    from importlib.resources import files

    features: list[dict[str, Any]] = json.loads((files("pqext") / "examples" / "earthquakes.json").read_text())[
        "features"
    ]
    return features


@pytest.fixture(scope="session")
def events_file(events: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The earthquakes as JSON lines."""
    path = tmp_path_factory.mktemp("events") / "events.ndjson"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path
