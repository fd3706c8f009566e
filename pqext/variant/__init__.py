"""VARIANT: binary values from and to JSON and Python, access by path, shredding and validation."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pqext.variant.cast import get as get
    from pqext.variant.exploding import explode as explode
    from pqext.variant.file_schema import schema_of_file as schema_of_file
    from pqext.variant.infer import infer_schema as infer_schema
    from pqext.variant.json import parse_json as parse_json
    from pqext.variant.json import parse_json_lines as parse_json_lines
    from pqext.variant.json_files import JsonReader as JsonReader
    from pqext.variant.json_files import read_json as read_json
    from pqext.variant.json_text import to_json as to_json
    from pqext.variant.reconstruct import unshred as unshred
    from pqext.variant.rewriting import Rewritten as Rewritten
    from pqext.variant.rewriting import reshred_file as reshred_file
    from pqext.variant.rewriting import unshred_file as unshred_file
    from pqext.variant.schema import shredding_schema as shredding_schema
    from pqext.variant.shredding import shred as shred
    from pqext.variant.timestamp import Timestamp as Timestamp
    from pqext.variant.types import is_variant_type as is_variant_type
    from pqext.variant.types import variant_field as variant_field
    from pqext.variant.types import variant_type as variant_type
    from pqext.variant.validation import VariantFault as VariantFault
    from pqext.variant.validation import find_faults as find_faults
    from pqext.variant.validation import validate as validate
    from pqext.variant.value import Variant as Variant

_MODULES = {
    "JsonReader": "json_files",
    "Timestamp": "timestamp",
    "Variant": "value",
    "VariantFault": "validation",
    "find_faults": "validation",
    "explode": "exploding",
    "get": "cast",
    "infer_schema": "infer",
    "is_variant_type": "types",
    "parse_json": "json",
    "parse_json_lines": "json",
    "schema_of_file": "file_schema",
    "read_json": "json_files",
    "Rewritten": "rewriting",
    "reshred_file": "rewriting",
    "shred": "shredding",
    "shredding_schema": "schema",
    "to_json": "json_text",
    "unshred": "reconstruct",
    "unshred_file": "rewriting",
    "validate": "validation",
    "variant_field": "types",
    "variant_type": "types",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
