"""The corpus in the repository: inputs that reach all code that fuzzing has reached so far, one zip archive per target.

``python fuzz/corpus.py FOLDER`` unpacks the archives into one folder per target. ``--pack FOLDER`` replaces them with
the contents of such folders, which ``run.py TARGET -merge=1 NEW OLD`` should minimise first.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

ARCHIVES = Path(__file__).resolve().parent / "corpus"


def inputs(target: str) -> Iterator[bytes]:
    """Yield the inputs of one target."""
    with zipfile.ZipFile(ARCHIVES / f"{target}.zip") as archive:
        for name in archive.namelist():
            yield archive.read(name)


def unpack(folder: Path) -> None:
    """Write each input to its own file, named by its hash as in libFuzzer."""
    for path in sorted(ARCHIVES.glob("*.zip")):
        (folder / path.stem).mkdir(parents=True, exist_ok=True)
        for data in inputs(path.stem):
            (folder / path.stem / hashlib.sha1(data).hexdigest()).write_bytes(data)


def pack(folder: Path) -> None:
    """Write the archives reproducibly: inputs are sorted and have no times."""
    ARCHIVES.mkdir(exist_ok=True)
    for target in sorted(path for path in folder.iterdir() if path.is_dir()):
        unique = sorted({path.read_bytes() for path in target.iterdir()}, key=lambda data: (len(data), data))
        with zipfile.ZipFile(ARCHIVES / f"{target.name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for data in unique:
                archive.writestr(zipfile.ZipInfo(hashlib.sha1(data).hexdigest()), data, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    pack(Path(sys.argv[2])) if sys.argv[1] == "--pack" else unpack(Path(sys.argv[1]))
