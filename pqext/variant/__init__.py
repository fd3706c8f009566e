"""VARIANT: binary values from and to JSON and Python, access by path, shredding and validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pqext.core.lazy import attach

if TYPE_CHECKING:
    from pqext.variant.access.cast import get as get
    from pqext.variant.access.exploding import explode as explode
    from pqext.variant.conversion.arrow import from_arrow as from_arrow
    from pqext.variant.conversion.objects import from_python as from_python
    from pqext.variant.conversion.objects import to_python as to_python
    from pqext.variant.conversion.tables import from_table as from_table
    from pqext.variant.conversion.tables import to_table as to_table
    from pqext.variant.editing import delete as delete
    from pqext.variant.editing import merge as merge
    from pqext.variant.editing import set as set
    from pqext.variant.equality import canonical as canonical
    from pqext.variant.equality import equals as equals
    from pqext.variant.equality import hash as hash
    from pqext.variant.json.files import JsonReader as JsonReader
    from pqext.variant.json.files import read_json as read_json
    from pqext.variant.json.parse import parse_json as parse_json
    from pqext.variant.json.parse import parse_json_lines as parse_json_lines
    from pqext.variant.json.text import to_json as to_json
    from pqext.variant.rewriting import Rewritten as Rewritten
    from pqext.variant.rewriting import reshred_file as reshred_file
    from pqext.variant.rewriting import unshred_file as unshred_file
    from pqext.variant.shredding.file_schema import schema_of_file as schema_of_file
    from pqext.variant.shredding.infer import infer_schema as infer_schema
    from pqext.variant.shredding.reconstruct import unshred as unshred
    from pqext.variant.shredding.schema import shredding_schema as shredding_schema
    from pqext.variant.shredding.shredder import shred as shred
    from pqext.variant.timestamp import Timestamp as Timestamp
    from pqext.variant.types import is_variant_type as is_variant_type
    from pqext.variant.types import variant_field as variant_field
    from pqext.variant.types import variant_type as variant_type
    from pqext.variant.validation import VariantFault as VariantFault
    from pqext.variant.validation import find_faults as find_faults
    from pqext.variant.validation import validate as validate
    from pqext.variant.value import Variant as Variant

_MODULES = {
    "canonical": "equality",
    "delete": "editing",
    "equals": "equality",
    "explode": "access.exploding",
    "find_faults": "validation",
    "from_arrow": "conversion.arrow",
    "from_python": "conversion.objects",
    "from_table": "conversion.tables",
    "get": "access.cast",
    "hash": "equality",
    "infer_schema": "shredding.infer",
    "is_variant_type": "types",
    "JsonReader": "json.files",
    "merge": "editing",
    "parse_json": "json.parse",
    "parse_json_lines": "json.parse",
    "read_json": "json.files",
    "reshred_file": "rewriting",
    "Rewritten": "rewriting",
    "schema_of_file": "shredding.file_schema",
    "set": "editing",
    "shred": "shredding.shredder",
    "shredding_schema": "shredding.schema",
    "Timestamp": "timestamp",
    "to_json": "json.text",
    "to_python": "conversion.objects",
    "to_table": "conversion.tables",
    "unshred": "shredding.reconstruct",
    "unshred_file": "rewriting",
    "validate": "validation",
    "Variant": "value",
    "variant_field": "types",
    "variant_type": "types",
    "VariantFault": "validation",
}

__all__ = sorted(_MODULES)

_OF_OTHERS = {
    "try_variant_get": "it is get",
    "variant_explode": "it is explode",
    "variant_get": "it is get, with strict=True",
}

if not TYPE_CHECKING:  # a name that is not there is an error to type checkers
    _HOMES = {name: f"{__name__}.{module}" for name, module in _MODULES.items()}
    __getattr__, __dir__ = attach(__name__, _HOMES, _OF_OTHERS)
