"""parquet-java, the library by which Spark reads Parquet, asked directly: what it sees of a file, and with which keys.

The two classes of ``java/`` are compiled by Janino, which Spark brings to compile its own queries.
"""

from __future__ import annotations

import base64
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent / "java"
DECRYPTED = {"parquet.crypto.factory.class": "pqext.tests.Keys"}
"""Options with which Spark reads what the tests encrypt."""


@dataclass(frozen=True)
class ParquetJava:
    """``footer`` is an instance of the Java class of that name."""

    footer: Any

    def row_groups(self, path: Path, *, encrypted: bool = False) -> list[list[dict[str, Any]]]:
        """The chunks of each row group, as ``Footer.java`` describes them; bounds are bytes."""
        groups: list[list[dict[str, Any]]] = json.loads(self.footer.describe(str(path), encrypted))
        for chunk in (chunk for group in groups for chunk in group):
            for name in ("minimum", "maximum"):
                if chunk.get(name) is not None:
                    chunk[name] = base64.b64decode(chunk[name])
            for name in ("minima", "maxima"):
                if name in chunk:
                    chunk[name] = [base64.b64decode(bound) for bound in chunk[name]]
        return groups


@contextmanager
def compiled(spark: Any, folder: Path) -> Iterator[ParquetJava]:
    """The classes. Meanwhile Spark finds them too: on the driver by its configuration, in tasks by a jar."""
    jar = folder / "pqext-tests.jar"
    loader = None
    with zipfile.ZipFile(jar, "w") as archive:
        for name in ("Keys", "Footer"):
            compiler = spark._jvm.org.codehaus.janino.SimpleCompiler()
            if loader is not None:
                compiler.setParentClassLoader(loader)
            compiler.cook((SOURCES / f"{name}.java").read_text())
            loader = compiler.getClassLoader()
            for compiled_name, code in dict(compiler.getBytecodes()).items():
                archive.writestr(compiled_name.replace(".", "/") + ".class", bytes(code))
    assert loader is not None
    spark.sparkContext._jsc.addJar(str(jar))
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    before = configuration.getClassLoader()
    configuration.setClassLoader(loader)
    yield ParquetJava(loader.loadClass("pqext.tests.Footer").newInstance())
    configuration.setClassLoader(before)
