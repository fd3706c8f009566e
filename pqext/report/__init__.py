"""Reports of the demo: plain data (:mod:`.model`) and the HTML page that shows it (:func:`render`)."""

from __future__ import annotations

from pqext.report.model import Agreement, Box, Chunk, DemoReport, FilePicture, Question, Reading, RowGroup
from pqext.report.page import render

__all__ = ["Agreement", "Box", "Chunk", "DemoReport", "FilePicture", "Question", "Reading", "RowGroup", "render"]
