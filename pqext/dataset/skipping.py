"""What knows files without opening them: a data-skipping store, or whatever answers as one does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pqext.dataset.expressions import Expression

EVIDENCE = "skipping store"
"""What is told of files that a store refuses."""


@runtime_checkable
class Skipping(Protocol):
    """Knows files by what was kept of them. A reason is a proof: no row of that file matches."""

    def refusals(self, sources: Sequence[Any], filter: Expression) -> Sequence[str | None]:
        """For each of the files why no row of it matches ``filter``, None where one may.

        A file that has changed since it was looked at is not refused.
        """


def skipping_of(given: Any, filesystem: Any, storage_options: Mapping[str, Any] | None) -> Skipping | None:
    """What is given as ``skipping=``: a store that is open, or the path or URL of one, which is opened.

    Raises ``TypeError`` for anything else.
    """
    if given is None or (isinstance(given, Skipping) and not isinstance(given, type)):
        return given
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"skipping is a data-skipping store or its path, not {type(given).__name__}")
    opened = import_module("pqext.skipping.store").open_store  # which stands above this room
    store: Skipping = opened(given, filesystem=filesystem, storage_options=storage_options)
    return store
