"""The inputs that are kept in the repository: what reaches all code that fuzzing has reached so far, a zip a target.

``python fuzz/corpus.py FOLDER`` unpacks them into a folder a target, ``python fuzz/corpus.py --keep FOLDER`` takes
such folders in their place. They are small: run ``run.py TARGET -merge=1 NEW OLD`` before.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

KEPT = Path(__file__).resolve().parent / "corpus"


def inputs(target: str) -> Iterator[bytes]:
    """The kept inputs of one target."""
    with zipfile.ZipFile(KEPT / f"{target}.zip") as archive:
        for name in archive.namelist():
            yield archive.read(name)


def unpack(folder: Path) -> None:
    """Write each input to a file of its own, named by its hash as libFuzzer does."""
    for path in sorted(KEPT.glob("*.zip")):
        (folder / path.stem).mkdir(parents=True, exist_ok=True)
        for data in inputs(path.stem):
            (folder / path.stem / hashlib.sha1(data).hexdigest()).write_bytes(data)


def keep(folder: Path) -> None:
    """The same archive for the same inputs: they are sorted, and their times are left out."""
    KEPT.mkdir(exist_ok=True)
    for held in sorted(path for path in folder.iterdir() if path.is_dir()):
        found = sorted({path.read_bytes() for path in held.iterdir()}, key=lambda data: (len(data), data))
        with zipfile.ZipFile(KEPT / f"{held.name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for data in found:
                archive.writestr(zipfile.ZipInfo(hashlib.sha1(data).hexdigest()), data, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    keep(Path(sys.argv[2])) if sys.argv[1] == "--keep" else unpack(Path(sys.argv[1]))
