"""What a file holds, told without reading its data: :func:`inspect` and the report it gives."""

from __future__ import annotations

from pqext.inspection.collect import inspect
from pqext.inspection.model import Column, Extension, Field, RowGroup
from pqext.inspection.report import Report

__all__ = ["Column", "Extension", "Field", "Report", "RowGroup", "inspect"]
