"""The names of columns in a store: of an index by the version of the store, and of partition columns.

Spec: document 001, versions 0, 1, 2 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

LATEST = 4
"""The version that is written."""
OBJECT_NAME = "obj_name"
PARTITION_PREFIX = "virtual_"


def index_column(columns: Sequence[str], index: str, version: int = LATEST) -> str:
    """The name of the column that holds the index called ``index`` over ``columns``, in a store of ``version``.

    Raises ``ValueError`` for no columns, or a version that is not known.

    >>> index_column(["nest.a.B"], "minmax")
    'nest$#$a$#$b_minmax_12'
    >>> index_column(["a", "b"], "minmax", version=1)
    'a_b_minmax'
    """
    if not columns:
        raise ValueError(f"the index {index!r} has no columns")
    if not 0 <= version <= LATEST:
        raise ValueError(f"the names of version {version} are not known: versions are 0 to {LATEST}")
    names = [column.lower() for column in columns]
    index = index.lower()
    if version < 2:
        return f"{(':', '_')[version].join(names)}_{index}"
    escaped = [name.replace("#", "##").replace(".", "$#$") for name in names]
    return f"{'_'.join(escaped)}_{index}_{'-'.join(str(_length(name)) for name in escaped)}"


def partition_column(name: str) -> str:
    """The name of the column of a store that holds the values of the partition column ``name``."""
    return PARTITION_PREFIX + name


def check_names(partitions: Iterable[str], indexes: Mapping[str, str]) -> None:
    """Refuse names that readers could not tell apart, letters of either case being alike.

    ``partitions`` are the dataset's partition columns; ``indexes`` maps the name of each index's column to words that
    describe the index in errors. Raises ``ValueError`` for two columns of one name, and for an index whose column's
    name begins with that of another index: by it, the original finds which columns a key encrypts.
    """
    taken = {OBJECT_NAME: "the names of the objects"}
    described = [(partition_column(one), f"the partition column {one!r}") for one in partitions]
    for name, words in [*described, *indexes.items()]:
        other = taken.setdefault(name.lower(), words)
        if other is not words:
            raise ValueError(f"{words} and {other} would both be the column {name!r} of the store: leave one out")
    before = ""
    for name in sorted(indexes):  # a name stands right behind its own beginning, or others that begin so
        if before and name.startswith(before):
            raise ValueError(
                f"the column {name!r} of {indexes[name]} begins with the name of {indexes[before]}, {before!r}: "
                "leave one of the indexes out"
            )
        before = name


def _length(name: str) -> int:
    """The length of a name as Java counts it, in units of UTF-16."""
    return len(name.encode("utf-16-le", "surrogatepass")) // 2


def dotted(path: Sequence[str]) -> str:
    """How stores name a column: by its path with full stops, in back quotes where a name holds one itself, as in Spark.

    >>> dotted(["place", "city"]), dotted(["place.city"])
    ('place.city', '`place.city`')
    """
    return ".".join("`" + name.replace("`", "``") + "`" if set("`.") & set(name) else name for name in path)


def path_of(dotted: str) -> tuple[str, ...]:
    """The path of a column that a store names. Raises ``ValueError`` for back quotes that do not match.

    >>> path_of("place.city"), path_of("`place.city`")
    (('place', 'city'), ('place.city',))
    """
    if "`" not in dotted:
        return tuple(dotted.split("."))
    found = list(_NAMES.finditer(dotted))
    if "".join(one[0] for one in found) != dotted or not found or found[-1][2]:
        raise ValueError(f"the name {dotted!r} of a column has back quotes that do not match")
    return tuple(one[1][1:-1].replace("``", "`") if one[1][:1] == "`" else one[1] for one in found)


_NAMES = re.compile("(`(?:[^`]|``)+`|[^`.]+)([.]|$)")
