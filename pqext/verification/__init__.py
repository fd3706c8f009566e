"""Does a file keep the rules of the format, and do its metadata tell the truth? :func:`verify` and its report."""

from __future__ import annotations

from pqext.verification.model import Count, Fault, Unchecked
from pqext.verification.report import Report
from pqext.verification.run import verify

__all__ = ["Count", "Fault", "Report", "Unchecked", "verify"]
