"""Cleaning a folder of what killed saves have left, wherever it lies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pqext.core.local_paths import scheme_of
from pqext.spark import commit
from pqext.spark.commit import ABANDONED_AFTER, Cleaned


def clean(
    path: str | os.PathLike[str],
    *,
    older_than: timedelta = ABANDONED_AFTER,
    storage_options: Mapping[str, Any] | None = None,
) -> Cleaned:
    """Finish the saves into folder ``path`` that were killed after they were decided, and remove what others left.

    What a save left that was never decided is removed if its driver is known to be dead (it ran on this machine), or if
    nothing in it has changed for ``older_than``. Saves clean the folder they write to in the same way. In a folder of
    S3, which ``storage_options`` reach, uploads of saves are given up that began so long ago.

    Raises ``FileNotFoundError`` for no folder, and ``CorruptFileError`` for a journal that cannot be followed.
    """
    name = os.fspath(path)
    if scheme_of(name) in ("s3", "s3a"):
        from pqext.spark.store_target import StoreTarget

        return StoreTarget(name, storage_options).clean(older_than)
    return commit.clean(name, older_than=older_than)
