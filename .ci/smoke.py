"""Use the installed wheel from a folder that is not the clone; look into the distributions too, where they are named.

    python .ci/smoke.py [SDIST WHEEL]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

import pqext
from pqext import geo, variant


def names(archive: Path) -> set[str]:
    """The files in a wheel, or in an sdist below its one folder."""
    if archive.suffix == ".whl":
        return set(zipfile.ZipFile(archive).namelist())
    with tarfile.open(archive) as sdist:
        return {member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()}


def check_contents(sdist: set[str], wheel: set[str]) -> None:
    """The sdist can be built from; the wheel holds all that runs and nothing else."""
    kernels = {name for name in sdist if name.endswith(".pyx")}
    assert kernels, "no kernel in the sdist"
    for stem in [*(kernel.removesuffix(".pyx") for kernel in kernels), "pqext/core/kernels/_cython"]:
        built = any(name.startswith(stem + ".") and name.endswith((".so", ".pyd")) for name in wheel)
        assert built, f"{stem}: not built"
    for kernel in kernels:
        assert kernel.removesuffix(".pyx") + ".pyi" in wheel, f"{kernel}: no .pyi"
    for folder in ("tests/", "specs/", "benchmarks/", "fuzz/", ".github/workflows/"):
        assert any(name.startswith(folder) for name in sdist), f"no {folder} in the sdist"
    foreign = {name for name in sdist if "parquet-testing" in name.split("/")}
    assert not foreign, f"files of others: {foreign}"
    for suffix in (".pxd", ".pxi", ".h", ".pyi", ".json", ".md", "py.typed"):
        shared = {name for name in sdist if name.startswith("pqext/") and name.endswith(suffix)}
        assert shared, f"no {suffix} in the sdist"
        assert shared <= wheel, f"not in the wheel: {shared - wheel}"
    assert any(name.endswith("licenses/LICENSE") for name in wheel), "no licence"
    astray = {name for name in wheel if not name.startswith(("pqext/", "pqext-", "pyspark_pqext"))}
    assert not astray, f"not ours to install: {astray}"
    unwanted = {name for name in sdist | wheel if name.endswith((".c", ".so.tmp")) or "/build/" in name}
    assert not unwanted, f"build products: {unwanted}"


def check_round_trip(folder: Path) -> Path:
    """Write and read VARIANT and GEOMETRY with the installed package."""
    points = pa.array([bytes.fromhex("0101000000000000000000F03F0000000000000040"), None])
    events = variant.parse_json(pa.array(['{"mag": 4.25, "place": "Fiji"}', None]))
    schema = pa.schema([variant.variant_field("event"), geo.geometry_field("geom")])
    table = pa.Table.from_arrays([events, points], schema=schema)
    path = folder / "events.parquet"
    pqext.write_table(table, path, shredding={"event": "STRUCT<mag: DECIMAL(9,2)>"})
    back = pqext.read_table(path)
    assert variant.to_json(back["event"]).to_pylist() == ['{"mag":4.25,"place":"Fiji"}', None]
    assert back["geom"].to_pylist() == points.to_pylist()
    return path


def main() -> None:
    assert "site-packages" in Path(pqext.__file__).parts, f"not the installed package: {pqext.__file__}"
    distributions = [Path(argument) for argument in sys.argv[1:]]
    if distributions:
        check_contents(*map(names, distributions))
    with TemporaryDirectory() as folder:
        path = check_round_trip(Path(folder))
        script = Path(sys.executable).with_name("pqext.exe" if os.name == "nt" else "pqext")
        for command in ([script], [sys.executable, "-m", "pqext"]):
            done = subprocess.run([*command, "schema", path], check=True, capture_output=True, encoding="utf-8")
            assert "VARIANT" in done.stdout
            assert "GEOMETRY" in done.stdout
        print(done.stdout)
    for one in distributions:
        print(f"{one.name}: {one.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
