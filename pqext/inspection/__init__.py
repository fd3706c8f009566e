"""Describe a file without reading its values: :func:`inspect`, :func:`layout` and their reports."""

from __future__ import annotations

from pqext.inspection.collect import Report, inspect
from pqext.inspection.file_layout import Layout, layout
from pqext.inspection.model import Column, Extension, Field, RowGroup

__all__ = ["Column", "Extension", "Field", "Layout", "Report", "RowGroup", "inspect", "layout"]
