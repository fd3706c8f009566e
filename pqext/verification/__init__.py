"""Check files against the rules of the format: :func:`verify` and its report."""

from __future__ import annotations

from pqext.verification.report import Count, Fault, Report, UncheckedColumn
from pqext.verification.run import verify

__all__ = ["Count", "Fault", "Report", "UncheckedColumn", "verify"]
