"""Options of the reader and the writer: one name each, the same in Python, Spark and on the command line."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Compression = Literal["uncompressed", "snappy", "zstd"]
COMPRESSIONS: tuple[Compression, ...] = get_args(Compression)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a file is read.

    ``shredded``: give shredded VARIANT columns as their storage structs instead of whole values.
    ``checksums``: verify a page's CRC where it has one. ``threads``: columns decoded at once, 0 for one
    a processor.
    """

    shredded: bool = False
    checksums: bool = True
    threads: int = 0


_KINDS: dict[str, tuple[type, ...]] = {
    "compression": (str, Mapping),
    "dictionary": (bool, Mapping),
    "shredding": (Mapping,),
    "geometry": (Mapping,),
    "key_value_metadata": (Mapping,),
}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a file is written.

    ``compression`` and ``dictionary`` take one value or a mapping from a leaf's dotted path.
    ``shredding`` maps a VARIANT column to its shredding schema (DDL, Arrow type or ``"infer"``),
    ``geometry`` maps a WKB column to its CRS. A row group or page ends at whichever of its rows and bytes is
    reached first; bytes are those of Arrow before encoding. ``page_version`` is 1 or 2.
    """

    compression: Compression | Mapping[str, Compression] = "snappy"
    dictionary: bool | Mapping[str, bool] = True
    row_group_rows: int = 1 << 20
    row_group_bytes: int = 512 << 20
    page_rows: int = 20_000
    page_bytes: int = 1 << 20
    page_version: Literal[1, 2] = 1
    statistics: bool = True
    checksums: bool = True
    shredding: Mapping[str, Any] = field(default_factory=dict)
    geometry: Mapping[str, Any] = field(default_factory=dict)
    key_value_metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("row_group_rows", "row_group_bytes", "page_rows", "page_bytes"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive number, not {value!r}")
        for name, kinds in _KINDS.items():
            if not isinstance(getattr(self, name), kinds):
                raise TypeError(f"{name} cannot be a {type(getattr(self, name)).__name__}")
        if self.page_version not in (1, 2):
            raise ValueError(f"page_version must be 1 or 2, not {self.page_version!r}")
        chosen = self.compression
        for codec in [chosen] if isinstance(chosen, str) else chosen.values():
            if codec not in COMPRESSIONS:
                raise ValueError(f"compression must be one of {', '.join(COMPRESSIONS)}, not {codec!r}")

    def check_leaves(self, paths: Collection[str]) -> None:
        """Raise ``ValueError`` when a choice for one leaf names none of the dotted ``paths``."""
        for name in ("compression", "dictionary"):
            chosen = getattr(self, name)
            for path in chosen if isinstance(chosen, Mapping) else ():
                if path not in paths:
                    raise ValueError(f"{name} names column {path!r}; the columns are {', '.join(paths)}")

    def compression_of(self, path: str) -> Compression:
        """The codec of the leaf at dotted ``path``."""
        return self.compression if isinstance(self.compression, str) else self.compression.get(path, "snappy")

    def dictionary_of(self, path: str) -> bool:
        """May the leaf at dotted ``path`` be dictionary-encoded?"""
        return self.dictionary if isinstance(self.dictionary, bool) else self.dictionary.get(path, True)
