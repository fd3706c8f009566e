"""Cleaning a folder of what killed saves have left, wherever it lies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pqext.dataset.writing import commit
from pqext.dataset.writing.commit import ABANDONED_AFTER, Cleaned
from pqext.spark.base.files import is_remote, target_of
from pqext.spark.base.hadoop import from_hadoop


def clean(
    path: str | os.PathLike[str],
    *,
    older_than: timedelta = ABANDONED_AFTER,
    storage_options: Mapping[str, Any] | None = None,
) -> Cleaned:
    """Finish the saves into folder ``path`` that were killed after they were decided, and remove what others left.

    What a save left that was never decided is removed if its driver is known to be dead (it ran on this machine), or if
    nothing in it has changed for ``older_than``. Saves finish decided ones in the folder they write to, too.

    ``path`` may be a URL of ``s3://``, ``gs://`` or ``abfss://``. There, what saves began so long ago is given up.
    ``storage_options`` are credentials and the like, by default what the Hadoop settings of the active session say.

    Raises ``FileNotFoundError`` for no folder, and ``CorruptFileError`` for a journal that cannot be followed.
    """
    name = os.fspath(path)
    if is_remote(name):
        return target_of(name, storage_options or _of_session(name)).clean(older_than)
    return commit.clean(name, older_than=older_than)


def _of_session(path: str) -> dict[str, Any] | None:
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    return None if spark is None else from_hadoop(spark, path)
