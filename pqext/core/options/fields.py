"""Validate option fields, and assemble docstrings of option classes from their fields."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from textwrap import dedent, indent
from typing import Any, TypeVar

from pqext.core.format.compression import levels
from pqext.core.options.encryption import FileEncryption

T = TypeVar("T")
_TYPES: dict[str, tuple[type, ...]] = {
    "compression": (str, Mapping),
    "dictionary": (bool, Mapping),
    "encodings": (str, Mapping),
    "shredding": (Mapping,),
    "geometry": (Mapping,),
    "annotations": (Mapping,),
    "key_value_metadata": (Mapping,),
    "extensions": (Mapping,),
    "second_encodings": (Mapping,),
    "encryption": (FileEncryption, type(None)),
    "compression_level": (int, Mapping, type(None)),
}
_BY_COLUMN = ("shredding", "geometry", "second_encodings")


def check_flags(options: Any, *flags: str) -> None:
    """Raise ``TypeError`` if an option in ``flags`` is not a bool, and ``ValueError`` if ``threads`` is invalid."""
    for name in flags:
        if not isinstance(getattr(options, name), bool):
            raise TypeError(f"{name} must be a bool, not {getattr(options, name)!r}")
    threads = options.threads
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 0:
        raise ValueError(f"threads must be 0 (one per processor) or more, not {threads!r}")


def check_write_types(options: Any) -> None:
    """Raise ``TypeError`` if the value of a writer option has the wrong type."""
    for name, types in _TYPES.items():
        value = getattr(options, name)
        if isinstance(value, types):
            continue
        if name == "compression" and value is None:
            raise TypeError('compression must not be None; pass "uncompressed" to disable compression')
        example = "'infer'" if value == "auto" else repr(value) if isinstance(value, str) else "..."
        advice = f"; pass a mapping of columns, {name}={{'column': {example}}}" if name in _BY_COLUMN else ""
        raise TypeError(f"{name} must not be a {type(value).__name__}{advice}")


def check_profile(options: Any) -> None:
    """Raise ``ValueError`` for an unknown profile, and for writer options that the profile does not allow."""
    if options.profile not in (None, "spark"):
        raise ValueError(f'profile must be None or "spark", not {options.profile!r}')
    if options.profile is None:
        return
    encodings = [options.encodings] if isinstance(options.encodings, str) else options.encodings.values()
    for encoding in encodings:
        if encoding in ("alp", "byte_stream_split"):
            raise ValueError(
                f"encoding {encoding!r} is not supported by all versions of Spark; choose another encoding, or omit "
                'profile="spark"'
            )
    if "brotli" in ([options.compression] if isinstance(options.compression, str) else options.compression.values()):
        raise ValueError('Spark does not bundle a brotli codec; choose another compression, or omit profile="spark"')
    if options.encryption is not None and options.page_version == 2:
        raise ValueError(
            'Spark does not read encrypted V2 data pages; pass page_version=1, or omit profile="spark"'
        )


def check_key_values(pairs: Mapping[Any, Any]) -> None:
    """Raise ``TypeError`` or ``ValueError`` if a key or value of the key-value metadata is not valid text."""
    for text in (part for pair in pairs.items() for part in pair):
        if not isinstance(text, str):
            raise TypeError(f"key_value_metadata must map text to text, not {text!r}")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"key_value_metadata contains {text!r}, which is not valid Unicode") from None


def check_geoparquet(options: Any) -> None:
    """Raise ``TypeError`` or ``ValueError`` if GeoParquet options are invalid or contradict each other."""
    version = options.geoparquet
    if version is not None and not isinstance(version, bool) and version not in ("1.1", "2.0"):
        advice = f"; primary_geometry={version!r} names the primary column" if isinstance(version, str) else ""
        raise ValueError(f'geoparquet must be a bool, None, "1.1" or "2.0", not {version!r}{advice}')
    if not isinstance(options.primary_geometry, str | None):
        raise TypeError(f"primary_geometry must be the name of a column, not {options.primary_geometry!r}")
    if version is False and options.primary_geometry is not None:
        raise ValueError("primary_geometry needs GeoParquet metadata, which geoparquet=False omits")
    if version and "geo" in options.key_value_metadata:
        raise ValueError(
            "key_value_metadata has the key 'geo', which geoparquet writes; omit the key, or pass geoparquet=False"
        )


def check_level(codec: str, level: Any, *, strict: bool) -> None:
    """Raise ``TypeError`` or ``ValueError`` if the codec does not support ``level``. Unless ``strict`` is set, any
    level is accepted for a codec without levels.
    """
    if not isinstance(level, int) or isinstance(level, bool):
        raise TypeError(f"compression_level must be an integer, not {level!r}")
    allowed = levels(codec)
    if allowed is None and strict:
        raise ValueError(f"compression {codec!r} has no levels, so compression_level must be None")
    if allowed is not None and not allowed[0] <= level <= allowed[1]:
        raise ValueError(f"compression {codec!r} has levels {allowed[0]} to {allowed[1]}, not {level}")


def append_field_docs(cls: type[T]) -> type[T]:
    """Add a list of fields, with types, defaults and descriptions, to the docstring of a dataclass.

    The fields are read from the source when the docstring is accessed, so that importing the module stays fast.

    >>> from pqext.core.options.read_write import ReadOptions
    >>> "checksums: bool = True" in ReadOptions.__doc__
    True
    """
    type.__setattr__(cls, "__doc__", _FieldDocs(inspect.cleandoc(cls.__doc__ or "")))
    return cls


class _FieldDocs:
    """Descriptor that builds a class docstring on access."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __get__(self, instance: Any, owner: type) -> str:
        import ast

        try:
            definition = ast.parse(dedent(inspect.getsource(owner))).body[0]
        except (OSError, TypeError, SyntaxError):  # the source is not available
            return self._text
        assert isinstance(definition, ast.ClassDef)
        lines = [self._text, "", "Fields:"]
        for field, text in zip(definition.body, definition.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                documentation = inspect.cleandoc(ast.literal_eval(text.value))
                lines += [indent(ast.unparse(field), " " * 4), indent(documentation, " " * 8)]
        return "\n".join(lines)
