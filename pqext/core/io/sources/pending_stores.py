"""Select the store for pending files by the scheme of a URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.local_paths import scheme_of, split_uri
from pqext.core.io.sources.container import Container
from pqext.core.io.sources.multipart import Bucket
from pqext.core.io.sources.pending_files import PendingStore
from pqext.core.io.sources.store_errors import redact_uri

SCHEMES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss"})
"""Schemes of stores that support pending files."""


def pending_store(uri: str, storage_options: Mapping[str, Any] | None) -> PendingStore:
    """Open the store of a URL for pending files.

    Raises ``UnsupportedError`` if the store does not support pending files, and ``ValueError`` if the URL has no
    bucket, or has a user, a password or a query, which would appear in names and messages.
    """
    scheme = scheme_of(uri)
    if redact_uri(uri) != uri:
        raise ValueError(f"{redact_uri(uri)} has credentials or options in the URL: pass them as storage_options")
    if not split_uri(uri).netloc:
        raise ValueError(f"{uri} has no bucket")
    if scheme in ("s3", "s3a"):
        return Bucket(uri, storage_options)
    if scheme in SCHEMES:
        return Container(uri, scheme, storage_options)
    raise UnsupportedError(
        f"writing a folder from several tasks is not supported on {scheme}://; mount the store and pass its local "
        f"path, or write to one of {', '.join(f'{name}://' for name in sorted(SCHEMES))}",
        feature=f"writing folders of {scheme}://", path=redact_uri(uri),
    )
