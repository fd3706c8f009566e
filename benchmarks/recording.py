"""What a benchmark measured, as JSON in ``benchmarks/results/``, with the machine, the versions and the command."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
from dataclasses import dataclass, field
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"
LIBRARIES = ("pyarrow", "duckdb", "polars", "datafusion", "pyspark", "deltalake")


@dataclass
class Recording:
    """Seconds of each engine for each case of one benchmark, of the processor unless ``unit`` says otherwise."""

    title: str
    unit: str = "processor seconds"
    cases: dict[str, dict[str, float]] = field(default_factory=dict)
    figures: dict[str, dict[str, float | str]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each case."""

    def add(self, case: str, engine: str, seconds: float) -> None:
        self.cases.setdefault(case, {})[engine] = float(f"{seconds:.4g}")

    def add_figure(self, name: str, value: float, unit: str, goal: float) -> None:
        """What is compared with a goal instead of with other engines."""
        self.figures[name] = {"value": float(f"{value:.4g}"), "unit": unit, "goal": float(f"{goal:.4g}")}

    def add_size(self, case: str, size: int) -> None:
        self.sizes[case] = size

    def save(self) -> None:
        """Write ``results/NAME.json``, named like the script that runs."""
        script = Path(sys.argv[0])
        arguments = [argument for argument in sys.argv[1:] if argument != "--record"]
        found = {
            "title": self.title,
            "command": " ".join(["python", f"benchmarks/{script.name}", *arguments]),
            "machine": machine(),
            "versions": {name: importlib.metadata.version(name) for name in LIBRARIES if is_loaded(name)},
            "unit": self.unit,
            "cases": self.cases,
            **({"figures": self.figures} if self.figures else {}),
            **({"bytes": self.sizes} if self.sizes else {}),
        }
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{script.stem}.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def is_loaded(library: str) -> bool:
    return library in sys.modules


def machine() -> str:
    """The processor, the number of processors and the version of Python."""
    return f"{processor()}, {os.cpu_count()} processors, Python {platform.python_version()}"


def processor() -> str:
    """The name of the processor, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
