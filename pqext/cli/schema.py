"""``pqext schema FILE``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pqext.cli.files import File, one_file, print_shown, refusals
from pqext.cli.places import Anonymous, Storage, placed
from pqext.cli.scan_arguments import Json
from pqext.text import shorten, visible

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.tree import Tree

    from pqext.core.reader import ParquetFile
    from pqext.core.schema import SchemaNode
    from pqext.variant.shredding.schema import ShreddingSchema

MAX_FIELDS = 1_000
_MAX_TYPE = 2_000


class Form(StrEnum):
    """How a schema is shown."""

    tree = "tree"
    json = "json"
    arrow = "arrow"
    ddl = "ddl"


def command(
    file: File,
    form: Annotated[
        Form, typer.Option("--format", help="A tree for people, JSON, the Arrow schema, or DDL of Spark's types.")
    ] = Form.tree,
    as_json: Json = False,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Show the columns of a file with their logical types, and the shredding of VARIANT columns as DDL.

    The shredding can be given to --shredding as it is.

    Example: [bold]pqext schema logs.parquet --format ddl[/bold]
    """
    from pqext.core.limits import Limits
    from pqext.core.reader import ParquetFile

    with refusals():
        path = one_file(*placed([file], storage, anonymous))
    with ParquetFile(path, limits=Limits.untrusted()) as opened:
        if as_json or form is Form.json:
            typer.echo(json.dumps([_described(node) for node in opened.schema.root.children], indent=2))
        elif form is Form.tree:
            _print_tree(opened)
        elif form is Form.arrow:
            for line in opened.arrow_schema.to_string(show_field_metadata=False).splitlines():
                typer.echo(visible(line))
        else:
            types = [f"{_quoted(field.name)} {ddl_type(field)}{_not_null(field)}" for field in opened.arrow_schema]
            typer.echo(visible(",\n".join(types)).replace("\\n", "\n"))


def shredding_of(file: ParquetFile) -> dict[str, ShreddingSchema]:
    """The shredding schema of each VARIANT column of a file, by dotted path."""
    return {node.dotted: schema for node in _variants(file.schema.root) if (schema := _shredding(node)) is not None}


def _variants(node: SchemaNode) -> Iterator[SchemaNode]:
    for child in node.children:
        if child.logical_name == "VARIANT":
            yield child
        elif not child.is_leaf:
            yield from _variants(child)


def _shredding(node: SchemaNode) -> ShreddingSchema | None:
    """By which schema a VARIANT is shredded; None where it is laid out wrongly."""
    from pqext.core import shape
    from pqext.core.errors import VariantError
    from pqext.core.options import ReadOptions
    from pqext.variant.shredding.schema import schema_of_storage

    try:
        return schema_of_storage(shape.of(node).storage_field(ReadOptions(shredded=True)).type)
    except VariantError:
        return None


def _type(node: SchemaNode) -> str:
    """The logical type where there is one, else the physical type or group."""
    from pqext.inspection.values import logical_type

    logical = logical_type(node.logical_type)
    if logical is not None:
        return logical
    return "group" if node.physical_type is None else node.physical_type.name


def _described(node: SchemaNode) -> dict[str, Any]:
    from pqext.variant.shredding.schema import Untyped

    described: dict[str, Any] = {"name": node.name, "type": _type(node), "repetition": node.repetition.name.lower()}
    if node.physical_type is not None:
        described["physical_type"] = node.physical_type.name
    if node.logical_name == "VARIANT":
        schema = _shredding(node)
        described["shredding"] = None if schema is None or isinstance(schema, Untyped) else str(schema)
    elif not node.is_leaf:
        described["fields"] = [_described(child) for child in node.children]
    return described


def _print_tree(file: ParquetFile) -> None:
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text(visible(str(file.path)), style="bold"), guide_style="dim")
    room = MAX_FIELDS
    for node in file.schema.root.children:
        room = _branch(tree, node, room)
    if not room:
        tree.add(Text("and more: --format json has all", style="dim"))
    print_shown(tree)


def _branch(tree: Tree, node: SchemaNode, room: int) -> int:
    """Add ``node`` and what is below it; returns how many more may be added."""
    from rich.text import Text

    from pqext.variant.shredding.schema import Untyped

    if not room:
        return 0
    text = Text(visible(node.name), style="bold")
    text.append(f" {shorten(visible(_type(node)), _MAX_TYPE)}", style="not bold cyan")
    text.append(f" {node.repetition.name.lower()}", style="not bold dim")
    branch = tree.add(text)
    room -= 1
    if node.logical_name == "VARIANT":
        schema = _shredding(node)
        told = (
            "laid out wrongly: see pqext verify" if schema is None
            else "not shredded" if isinstance(schema, Untyped)
            else f"shredded as {schema}"
        )
        branch.add(Text(shorten(visible(told), _MAX_TYPE), style="dim"))
        return room
    for child in node.children:
        room = _branch(branch, child, room)
    return room


def _quoted(name: str) -> str:
    from pqext.variant.shredding.schema import quote_name

    return quote_name(name)


def _not_null(field: pa.Field) -> str:
    return "" if field.nullable else " NOT NULL"


def ddl_type(field: pa.Field) -> str:
    """The type of a column in Spark's DDL, for those that it has no name for the nearest one that holds all values."""
    import pyarrow as pa

    from pqext.geo.types import type_of
    from pqext.variant.types import is_variant_type, storage_type

    spatial = type_of(field)
    if spatial is not None:
        return f"{'GEOMETRY' if spatial.planar else 'GEOGRAPHY'}({_srid(spatial.crs)})"
    kind = storage_type(field.type)
    types = pa.types
    if is_variant_type(kind):
        return "VARIANT"
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_struct(kind):
        return "STRUCT<" + ", ".join(f"{_quoted(one.name)}: {ddl_type(one)}{_not_null(one)}" for one in kind) + ">"
    if types.is_map(kind):
        return f"MAP<{ddl_type(kind.key_field)}, {ddl_type(kind.item_field)}>"
    if types.is_nested(kind):
        return f"ARRAY<{ddl_type(kind.value_field)}>"
    if types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})" if kind.precision <= 38 else "STRING"
    if types.is_timestamp(kind):
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
    if types.is_time(kind):
        return "TIME(6)"
    return _PLAIN.get(str(kind).removeprefix("large_").removesuffix("_view").partition("[")[0], "BINARY")


_PLAIN = {
    "bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT",
    "uint8": "SMALLINT", "uint16": "INT", "uint32": "BIGINT", "uint64": "DECIMAL(20,0)",
    "halffloat": "FLOAT", "float": "FLOAT", "double": "DOUBLE", "string": "STRING", "null": "VOID",
    "date32": "DATE", "date64": "DATE", "duration": "BIGINT", "binary": "BINARY", "fixed_size_binary": "BINARY",
}


def _srid(crs: str | None) -> str:
    """The number by which Spark knows a CRS; ANY for others."""
    if crs is None or crs.upper() in ("OGC:CRS84", "EPSG:4326"):
        return "4326"
    authority, _, code = crs.partition(":")
    return code if authority.upper() == "EPSG" and code.isdigit() else "ANY"
