"""Write specs/conformance.md: every file of parquet-testing, what it exercises, who judged it and the result.

Run as ``PARQUET_TEST_DATA=... python tests/conformance_table.py`` with the package importable; takes a minute.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import conformance
from conformance_files import DIFFERENCES, LARGE, READABLE

from pqext.core.base.errors import ParquetError

TABLE = Path(__file__).resolve().parent.parent / "specs" / "conformance.md"

HEAD = """# The public files of parquet-testing

Written by `python tests/conformance_table.py`; `tests/core/test_conformance.py` holds it. A file is right when at least
one judge gives exactly the same values (nulls, order, and the bits of floating-point numbers included) and no judge
that reads it gives others without a reason given below. Judges are pyarrow {pyarrow}, DuckDB {duckdb} and polars
{polars}, a file's own CSV, the values that its description or the program that wrote it gives, and the `variant.bin`
files of the shredded cases. Files of `bad_data` are in `tests/core/test_bad_data.py`.

{right} of {judged} files are right.

| file | exercises | judges that agree | judges that cannot read it | result |
|---|---|---|---|---|
"""


def row(verdict: conformance.Verdict) -> str:
    result = "right" if verdict.right else "WRONG"
    if verdict.differ:
        result += ", others differ: " + ", ".join(verdict.differ)
    agree, fail = ", ".join(verdict.agree) or "none", ", ".join(verdict.fail)
    return f"| `{verdict.file}` | {verdict.exercises} | {agree} | {fail} | {result} |"


def main() -> None:
    """Judge every file of the copy that PARQUET_TEST_DATA names and write the table."""
    import duckdb
    import polars
    import pyarrow

    warnings.simplefilter("ignore")
    root = Path(os.environ["PARQUET_TEST_DATA"])
    found = conformance.files_of(root)
    rows, right = [], 0
    names = [name for name in found if name not in LARGE]
    for name in names:
        try:
            verdict = conformance.compare(root, name)
        except ParquetError as error:
            rows.append(f"| `{name}` | {conformance.exercises(name)} | none | | WRONG: {error.message} |")
            continue
        right += verdict.right
        rows.append(row(verdict))
    text = HEAD.format(
        pyarrow=pyarrow.__version__, duckdb=duckdb.__version__, polars=polars.__version__, right=right,
        judged=len(names),
    )
    text += "\n".join(rows) + "\n"
    differing = [(name, judge, why) for (name, judge), why in DIFFERENCES.items() if name in found]
    if differing:
        text += "\nWhere a judge differs:\n\n" + "".join(f"- `{n}`, {judge}: {why}.\n" for n, judge, why in differing)
    absent = [name for name in READABLE if name not in found]
    if absent:
        text += "\nKnown, but not in the copy that was judged; the tests judge them in one that has them:\n\n"
        text += "".join(f"- `{name}`: {READABLE[name]}\n" for name in absent)
    TABLE.write_text(text, "utf-8")
    print(f"{right} of {len(names)} files are right, {len(absent)} known files are not in this copy")


if __name__ == "__main__":
    main()
