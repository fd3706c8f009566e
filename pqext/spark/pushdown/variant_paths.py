"""Paths within a VARIANT as Spark's own functions spell them."""

from __future__ import annotations

from pqext.variant.access.path import Path

_MAX_INDEX = (1 << 31) - 1


def spark_path(steps: Path) -> str | None:
    """``steps`` as text for Spark's ``variant_get``; None where that has no form for them.

    Spark knows no escapes: a name in quotes holds neither these nor a question mark, one behind a dot neither a dot nor
    a bracket. White space at the beginning of a name gets lost, and there is no empty name.

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
