"""Hadoop settings in the configuration files of a cluster.

Spark passes no settings of its session to a Python data source. The driver's ``spark-defaults.conf`` and
``core-site.xml`` hold those of the cluster.
"""

from __future__ import annotations

import json
import os
from collections.abc import MutableMapping
from contextlib import suppress
from copy import copy
from pathlib import Path
from xml.etree import ElementTree

from pqext.spark.base.files import is_remote
from pqext.spark.base.hadoop import storage_options_of

_PREFIX = "spark.hadoop."


def with_settings_of_cluster(options: MutableMapping[str, str]) -> MutableMapping[str, str]:
    """The options of a data source, with ``storage_options`` for its paths by configuration files.

    Settings of Spark's file take precedence over those of Hadoop's, and given options over both. Raises ``ValueError``
    as :func:`pqext.spark.base.hadoop.from_hadoop` does.
    """
    paths = json.loads(options["paths"]) if "paths" in options else [options["path"]] if "path" in options else []
    if "storage_options" in options or not any(map(is_remote, paths)):
        return options
    settings = _hadoop_settings() | _spark_settings()
    found = storage_options_of(settings.get, paths)
    if found is None:
        return options
    completed = copy(options)
    completed["storage_options"] = json.dumps(found)
    return completed


def _spark_settings() -> dict[str, str]:
    home = os.environ.get("SPARK_HOME", "")
    folder = os.environ.get("SPARK_CONF_DIR") or (os.path.join(home, "conf") if home else "")
    found = {}
    for line in _text(folder, "spark-defaults.conf").splitlines():
        name, _, value = line.strip().replace("=", " ", 1).replace("\t", " ").partition(" ")
        if name.startswith(_PREFIX):
            found[name.removeprefix(_PREFIX)] = value.strip()
    return found


def _hadoop_settings() -> dict[str, str]:
    home = os.environ.get("HADOOP_HOME", "")
    folder = os.environ.get("HADOOP_CONF_DIR") or (os.path.join(home, "etc", "hadoop") if home else "")
    text = _text(folder, "core-site.xml")
    if not text:
        return {}
    try:
        properties = ElementTree.fromstring(text).iter("property")
    except ElementTree.ParseError:
        return {}  # Hadoop reports it
    named = {one.findtext("name", "").strip(): one.findtext("value", "").strip() for one in properties}
    return {name: value for name, value in named.items() if name.startswith("fs.")}


def _text(folder: str, name: str) -> str:
    if folder:
        with suppress(OSError, UnicodeError):
            return Path(folder, name).read_text("utf-8")
    return ""
