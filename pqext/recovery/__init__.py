"""Files whose footer or pages are damaged: :func:`recover` writes what is left of them to a new file."""

from __future__ import annotations

from pqext.recovery.claims.report import Loss, Recovered, Recovery
from pqext.recovery.run import recover

__all__ = ["Loss", "Recovered", "Recovery", "recover"]
