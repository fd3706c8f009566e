"""Which store a URL names in which files can wait for the commit of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.local_paths import scheme_of, split_uri
from pqext.core.io.sources.container import Container
from pqext.core.io.sources.multipart import Bucket
from pqext.core.io.sources.pending_files import PendingStore
from pqext.core.io.sources.secrets import shown

SCHEMES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss"})
"""The schemes of stores in which files can wait."""


def pending_store(uri: str, storage_options: Mapping[str, Any] | None) -> PendingStore:
    """The store that a URL names.

    Raises ``UnsupportedError`` for one in which files cannot wait, and ``ValueError`` for a URL that names no bucket or
    has a user, a password or a query: these would become part of names and of messages.
    """
    scheme = scheme_of(uri)
    if shown(uri) != uri:
        raise ValueError(f"{shown(uri)} is given with credentials or options in the URL: give them as storage_options")
    if not split_uri(uri).netloc:
        raise ValueError(f"{uri} names no bucket")
    if scheme in ("s3", "s3a"):
        return Bucket(uri, storage_options)
    if scheme in SCHEMES:
        return Container(uri, scheme, storage_options)
    raise UnsupportedError(
        f"{scheme}:// takes no files that several tasks write together: mount it and give the path where it is "
        f"mounted, or write to one of {', '.join(f'{one}://' for one in sorted(SCHEMES))}",
        feature=f"writing folders of {scheme}://", path=shown(uri),
    )
