"""Format paths within a VARIANT for Spark's own functions."""

from __future__ import annotations

from pqext.variant.access.path import Path

_MAX_INDEX = (1 << 31) - 1


def spark_path(steps: Path) -> str | None:
    """Format ``steps`` for Spark's ``variant_get``. Returns None if Spark cannot express the path.

    Spark has no escapes: a quoted name cannot contain its quote or a question mark, and a name after a dot cannot
    contain a dot or a bracket. Leading whitespace of a name is lost, and empty names are not supported.

    >>> spark_path(("a", 0, "x.y", "it's \\"so\\""))
    '$.a[0][\\'x.y\\'].it\\'s "so"'
    """
    parts = [_step(step) for step in steps]
    return None if None in parts else "$" + "".join(part for part in parts if part is not None)


def _step(step: str | int) -> str | None:
    if isinstance(step, int):
        return f"[{step}]" if step <= _MAX_INDEX else None
    if not step or step[0].isspace():
        return None
    if "." not in step and "[" not in step:
        return f".{step}"
    quotes = [quote for quote in "'\"" if quote not in step and "?" not in step]
    return f"[{quotes[0]}{step}{quotes[0]}]" if quotes else None
