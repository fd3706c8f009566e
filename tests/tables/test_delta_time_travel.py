"""Select versions of Delta tables by time: the same versions as deltalake, and an error before the first one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import pqext
from pqext import tables
from pqext.cli import app

pytest.importorskip("deltalake")
from deltalake import DeltaTable, write_deltalake

FIRST = datetime(2026, 3, 1, 12, 0, 0, 123_000, UTC)
TIMES = [FIRST, FIRST + timedelta(seconds=1), FIRST + timedelta(days=1)]


def append_with_pqext(folder: Path, rows: pa.Table) -> None:
    tables.append(f"delta:{folder}", rows)


def append_with_deltalake(folder: Path, rows: pa.Table) -> None:
    write_deltalake(folder, rows, mode="append")


def set_commit_times(folder: Path) -> None:
    """Give the commits the modification times ``TIMES``."""
    for version, time in enumerate(TIMES):
        seconds = round(time.timestamp() * 1000) * 1_000_000 + 456_789
        os.utime(folder / "_delta_log" / f"{version:020}.json", ns=(seconds, seconds))


@pytest.fixture(params=[append_with_pqext, append_with_deltalake])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table of three versions; version ``n`` has the rows 0 to ``n``."""
    append: Callable[[Path, pa.Table], None] = request.param
    for number in range(3):
        append(tmp_path / "t", pa.table({"id": [number]}))
    set_commit_times(tmp_path / "t")
    return tmp_path / "t"


def rows_of_deltalake(folder: Path, time: datetime) -> list[int]:
    table = DeltaTable(folder)
    table.load_as_version(time)
    return sorted(pa.table(table.scan())["id"].to_pylist())


def rows_of_pqext(source: Any, time: str | datetime) -> list[int]:
    return sorted(pqext.scan(source, timestamp=time).to_table()["id"].to_pylist())


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("delay", [timedelta(0), timedelta(microseconds=1), timedelta(milliseconds=1), timedelta(7)])
def test_times_between_commits_select_the_version_of_deltalake(folder: Path, version: int, delay: timedelta) -> None:
    time = TIMES[version] + delay
    expected = rows_of_deltalake(folder, time)
    assert delay == timedelta(7) or expected == [*range(version + 1)]
    name = f"delta:{folder}"
    for source in (name, DeltaTable(folder), DeltaTable(folder, version=0)):
        assert rows_of_pqext(source, time) == expected
    assert rows_of_pqext(name, time.astimezone(timezone(timedelta(hours=-9)))) == expected
    for text in (time.isoformat(), time.replace(tzinfo=None).isoformat(), time.isoformat().replace("+00:00", "Z")):
        assert rows_of_pqext(name, text) == expected
        result = CliRunner().invoke(app, ["query", name, "--timestamp", text, "--order-by", "id"])
        assert [int(line) for line in result.output.split()[1:]] == expected


def test_modification_times_count_and_not_times_in_the_commits(folder: Path) -> None:
    for version in (1, 2):
        path = folder / "_delta_log" / f"{version:020}.json"
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] += 10**12
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    set_commit_times(folder)
    for version in range(3):
        assert rows_of_pqext(f"delta:{folder}", TIMES[version]) == rows_of_deltalake(folder, TIMES[version])


@pytest.mark.parametrize("delay", [timedelta(microseconds=1), timedelta(milliseconds=1), timedelta(7)])
def test_time_before_the_first_version_is_an_error(folder: Path, delay: timedelta) -> None:
    for source in (f"delta:{folder}", DeltaTable(folder)):
        with pytest.raises(FileNotFoundError, match=r"no version at 2026-.* version 0 is from 2026-03-01 12:00:00\.1"):
            pqext.scan(source, timestamp=FIRST - delay)


def test_time_before_the_first_remaining_commit_is_an_error(folder: Path) -> None:
    DeltaTable(folder, version=1).create_checkpoint()
    (folder / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"no version at 2026-.* version 1 is from 2026-03-01 12:00:01\.123"):
        pqext.scan(f"delta:{folder}", timestamp=TIMES[0])
    assert rows_of_pqext(f"delta:{folder}", TIMES[1]) == rows_of_deltalake(folder, TIMES[1]) == [0, 1]


def test_time_is_read_from_a_single_commit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the log may contain many files."""
    monkeypatch.setattr("pqext.tables.delta.loading.log_files", lambda *_: pytest.fail("the log is listed"))
    for time in TIMES:
        assert rows_of_pqext(f"delta:{folder}", time) == rows_of_deltalake(folder, time)


def test_unreadable_time_is_a_source_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str) -> Any:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("pqext.tables.delta.loading.os", SimpleNamespace(stat=fail, path=os.path))
    with pytest.raises(pqext.SourceError, match=r"the time of version 0 cannot be read: .*Permission denied.*delta:"):
        pqext.scan(f"delta:{folder}", timestamp=TIMES[0])


def test_commit_that_expires_during_the_call_has_no_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str) -> Any:
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr("pqext.tables.delta.loading.os", SimpleNamespace(stat=fail, path=os.path))
    assert rows_of_pqext(f"delta:{folder}", TIMES[1]) == rows_of_deltalake(folder, TIMES[1])
