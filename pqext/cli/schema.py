"""``pqext schema``: the columns of a file, or of the files of a folder and of the folders' names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import click

from pqext.cli.declarations import Option
from pqext.cli.files import every_file, print_shown, refusals
from pqext.cli.locations import Anonymous, Place, Storage, placed
from pqext.cli.reader_options import DEFAULTS, Reading
from pqext.cli.scan_arguments import Json, Sources
from pqext.cli.standard_input import without_path
from pqext.core.base.text import escape_text, shorten

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.tree import Tree

    from pqext.core.read.reader import ParquetFile
    from pqext.core.schema.nodes import SchemaNode
    from pqext.dataset.table.partitions import Partitions
    from pqext.variant.shredding.schema import ShreddingSchema

MAX_FIELDS = 1_000
_MAX_TYPE = 2_000


class Form(StrEnum):
    """How a schema is shown."""

    tree = "tree"
    json = "json"
    arrow = "arrow"
    ddl = "ddl"
    exact = "exact"


def command(
    sources: Sources,
    form: Annotated[
        Form, Option("--format", help="A tree for people, JSON, the Arrow schema, DDL of Spark's types, or exact DDL.")
    ] = Form.tree,
    as_json: Json = False,
    reading: Reading = DEFAULTS,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Show the columns of files with their logical types, and the shredding of VARIANT columns as DDL.

    Of several files the first one tells the columns, and folders named key=value add theirs. The shredding can be given
    to --shredding as it is. Exact DDL also has units, widths and signs for which Spark has no names; pqext recover
    takes it.

    Example: pqext schema logs.parquet --format ddl
    """
    from pqext.core.read.reader import ParquetFile

    with refusals():
        places = placed(sources, storage, anonymous)
        files = every_file(places)
        folders = _folders(places, files)
        options = reading.options
    with ParquetFile(files[0], options, limits=reading.limits) as opened:
        if as_json or form is Form.json:
            click.echo(json.dumps([*_columns(opened, folders)], indent=2))
        elif form is Form.tree:
            _print_tree(opened, ", ".join(sources), len(files), folders)
        elif form is Form.arrow:
            for line in _arrow(opened, folders).to_string(show_field_metadata=False).splitlines():
                click.echo(escape_text(line))
        else:
            exact = form is Form.exact
            types = [f"{_quoted(one.name)} {ddl_type(one, exact)}{_not_null(one)}" for one in _arrow(opened, folders)]
            click.echo(escape_text(",\n".join(types)).replace("\\n", "\n"))


def _folders(places: Sequence[Place], files: Sequence[Place]) -> Partitions | None:
    """The columns that the names of folders between ``places`` and their ``files`` add; None where there are none."""
    if all(isinstance(place, str) and place in files for place in places):
        return None  # which is known without importing what filters need
    from pqext.dataset.table.partitions import partitions_of

    return partitions_of(places, files)


def _arrow(file: ParquetFile, folders: Partitions | None) -> pa.Schema:
    return file.arrow_schema if folders is None else folders.complete_schema(file.arrow_schema)


def _named(folders: Partitions | None) -> dict[str, pa.Field]:
    return {} if folders is None else {field.name: field for field in folders.schema}


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
    from pqext.core.base.errors import VariantError
    from pqext.core.options.read_write import ReadOptions
    from pqext.core.schema import shape
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


def _columns(file: ParquetFile, folders: Partitions | None) -> Iterator[dict[str, Any]]:
    """The columns as JSON has them, those of folders in the place of the file's own of that name, or last."""
    named = _named(folders)
    for node in file.schema.root.children:
        found = named.pop(node.name, None)
        yield _described(node) if found is None else _partition(found)
    yield from map(_partition, named.values())


def _partition(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": str(field.type).upper(), "repetition": "optional", "partition": True}


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


def _print_tree(file: ParquetFile, sources: str, files: int, folders: Partitions | None) -> None:
    from rich.text import Text
    from rich.tree import Tree

    heading = Text(escape_text(without_path(str(file.path)) if files == 1 else sources), style="bold")
    if files > 1:
        heading.append(f": {files:,} files, the first is {escape_text(str(file.path))}", style="not bold dim")
    tree = Tree(heading, guide_style="dim")
    named = _named(folders)
    room = MAX_FIELDS
    for node in file.schema.root.children:
        found = named.pop(node.name, None)
        room = _branch(tree, node, room) if found is None else _leaf(tree, found, room)
    for field in named.values():
        room = _leaf(tree, field, room)
    if not room:
        tree.add(Text("and more: --format json has all", style="dim"))
    print_shown(tree, heading.cell_len + 1)


def _leaf(tree: Tree, field: pa.Field, room: int) -> int:
    """Add a column of the folders' names; returns how many more may be added."""
    from rich.text import Text

    if room:
        text = Text(escape_text(field.name), style="bold")
        text.append(f" {str(field.type).upper().replace('DATE32[DAY]', 'DATE')}", style="not bold cyan")
        tree.add(text.append(" by folder", style="not bold dim"))
    return max(0, room - 1)


def _branch(tree: Tree, node: SchemaNode, room: int) -> int:
    """Add ``node`` and what is below it; returns how many more may be added."""
    from rich.text import Text

    from pqext.variant.shredding.schema import Untyped

    if not room:
        return 0
    text = Text(escape_text(node.name), style="bold")
    text.append(f" {shorten(escape_text(_type(node)), _MAX_TYPE)}", style="not bold cyan")
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
        branch.add(Text(shorten(escape_text(told), _MAX_TYPE), style="dim"))
        return room
    for child in node.children:
        room = _branch(branch, child, room)
    return room


def _quoted(name: str) -> str:
    from pqext.variant.shredding.schema import quote_name

    return quote_name(name)


def _not_null(field: pa.Field) -> str:
    return "" if field.nullable else " NOT NULL"


def ddl_type(field: pa.Field, exact: bool = False) -> str:
    """The type of a column in Spark's DDL, for those that it has no name for the nearest one that holds all values.

    ``exact``: or one with the unit, width or sign that the file has.
    """
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
        fields = (f"{_quoted(one.name)}: {ddl_type(one, exact)}{_not_null(one)}" for one in kind)
        return f"STRUCT<{', '.join(fields)}>"
    if types.is_map(kind):
        return f"MAP<{ddl_type(kind.key_field, exact)}, {ddl_type(kind.item_field, exact)}>"
    if types.is_nested(kind):
        return f"ARRAY<{ddl_type(kind.value_field, exact)}>"
    if exact and (name := _exact(kind)) is not None:
        return name
    if types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})" if kind.precision <= 38 else "STRING"
    if types.is_timestamp(kind):
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
    if types.is_time(kind):
        return "TIME(6)"
    return _PLAIN.get(str(kind).removeprefix("large_").removesuffix("_view").partition("[")[0], "BINARY")


def _exact(kind: pa.DataType) -> str | None:
    """The type for which Spark has no name; None where it has one."""
    import pyarrow as pa

    types = pa.types
    if types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if types.is_timestamp(kind):
        return f"TIMESTAMP{'_NTZ' * (kind.tz is None)}({_DIGITS[kind.unit]})"
    if types.is_time(kind):
        return f"TIME({_DIGITS[kind.unit]})"
    if types.is_fixed_size_binary(kind):
        return f"BINARY({kind.byte_width})"
    if types.is_unsigned_integer(kind) or types.is_float16(kind):
        return {"halffloat": "FLOAT16"}.get(str(kind), str(kind).upper())
    return None


_DIGITS = {"s": 3, "ms": 3, "us": 6, "ns": 9}
"""Digits after the second, in the unit in which a file has them."""
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
