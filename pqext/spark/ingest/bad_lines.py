"""Documents that were not taken, told one by one in a file of JSON lines."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from pqext.spark.json.csv_documents import CsvPiece
from pqext.variant.json.files import Piece


def documents(piece: Piece | CsvPiece) -> list[tuple[int | None, bytes]]:
    """Each document of a piece, a row each: its first byte in the file, where that is known, and its text."""
    if isinstance(piece, CsvPiece):
        return [(None, text) for text in piece.documents.to_pylist()]
    text = bytes(piece.text)
    if piece.ends is None:
        found: list[tuple[int | None, bytes]] = []
        at = piece.start
        for line in text.split(b"\n"):
            if line.strip(b" \t\r\n"):
                found.append((at, line.removesuffix(b"\r")))
            at += len(line) + 1
        return found
    starts = [0, *map(int, piece.ends[:-1])]
    spans = zip(starts, map(int, piece.ends), strict=True)
    return [(None, text[start:stop].strip(b" \t\r\n,")) for start, stop in spans]


def line(file: str, offset: int | None, message: str, raw: bytes) -> bytes:
    """One line of the side file."""
    told: dict[str, object] = {"file": file, "offset": offset, "message": message}
    try:
        told["raw"] = raw.decode()
    except UnicodeDecodeError:
        told["raw_base64"] = base64.b64encode(raw).decode()
    return json.dumps(told, ensure_ascii=False).encode() + b"\n"


def told_of(file: str, rows: list[tuple[int | None, bytes]], reasons: Mapping[int, str]) -> bytes:
    """The lines for those of ``rows`` that have a reason."""
    found = []
    for row in sorted(reasons):
        offset, raw = rows[row]
        found.append(line(file, offset, reasons[row], raw))
    return b"".join(found)
