"""Run the benchmarks that have plots, record their results in ``benchmarks/results/``, and draw them.

    python benchmarks/record.py [NAME ...]

Takes about half an hour on two processors. Times are of the processor, so that other work on the machine disturbs them
little, but those of ``engine``, ``scan`` and ``spark``, which need an idle machine.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMANDS = {
    "quakes": [],
    "engine": ["--json", "230"],
    "scan": [],
    "read_write": ["--rows", "500000", "--repeat", "3"],
    "json_to_variant": ["--megabytes", "20", "--repeat", "3"],
    "variant_get": ["--rows", "200000", "--repeat", "3"],
    "variant_to_json": ["--megabytes", "20", "--repeat", "3"],
    "rows_as_text": [],
    "spark": [],
    "spark_views": [],
    "geo_query": ["--rows", "2000000", "--repeat", "3"],
    "geospatial": ["--repeat", "3"],
    "footer_forms": [],
    "wide_footer": [],
    "flat_footer": [],
    "checkpoint": [],
    "decode_paths": [],
    "planning_files": [],
    "lake_tables": [],
    "many_files": ["--files", "10000", "--repeat", "2"],
}


def main() -> None:
    for name in sys.argv[1:] or COMMANDS:
        print(f"==== {name}", flush=True)
        # A benchmark that misses a goal fails, and has results all the same.
        subprocess.run([sys.executable, HERE / f"{name}.py", *COMMANDS[name], "--record"], check=False)
    subprocess.run([sys.executable, HERE / "draw.py"], check=True)


if __name__ == "__main__":
    main()
