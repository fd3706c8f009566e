"""The demo's report: plain data (:mod:`.model`) and one HTML page drawn from it (:func:`render`)."""

from __future__ import annotations

from pqext.report.model import Agreement, Box, Chunk, DemoReport, FilePicture, Question, Reading, RowGroup
from pqext.report.page import render

__all__ = ["Agreement", "Box", "Chunk", "DemoReport", "FilePicture", "Question", "Reading", "RowGroup", "render"]
