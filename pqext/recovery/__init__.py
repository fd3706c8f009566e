"""Recover rows of files with a corrupt footer or corrupt pages into a new file (experimental): :func:`recover`."""

from __future__ import annotations

from pqext.recovery.candidates.report import Loss, RecoveredRowGroup, Recovery
from pqext.recovery.run import recover

__all__ = ["Loss", "RecoveredRowGroup", "Recovery", "recover"]
