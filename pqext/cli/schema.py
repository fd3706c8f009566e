"""The command ``pqext schema``, which shows the columns of files and of their partition folders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from pqext.cli.command import command, option
from pqext.cli.console import print_rich
from pqext.cli.errors import usage_errors
from pqext.cli.files import expand_files
from pqext.cli.locations import Place, Storage, hide_temporary_path, storage_options
from pqext.cli.reader_options import ReaderOptions, reading_options
from pqext.cli.scan_options import find_table, json_option, sources_argument
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


@command()
@sources_argument
@option(
    "--format", type=click.Choice(["tree", "json", "arrow", "ddl", "exact"]), default="tree",
    help="Output format: a tree, JSON, the Arrow schema, DDL with Spark types, or exact DDL.",
)
@json_option
@reading_options
@storage_options
def schema(sources: tuple[str, ...], format: str, as_json: bool, reading: ReaderOptions, storage: Storage) -> None:
    """Show the columns of files with their logical types, and the shredding of VARIANT columns as DDL.

    The first of several files determines the columns; folders named key=value add partition columns. --shredding
    accepts the printed shredding. Exact DDL includes units, widths and signs that Spark types cannot express; pqext
    recover accepts it.

    Example: pqext schema logs.parquet --format ddl
    """
    from pqext.core.read.reader import ParquetFile

    with usage_errors():
        places = storage.locate(sources)
        table = find_table(places)
        if table is not None:
            _print_table(table, "json" if as_json else format, storage)
            return
        files = expand_files(places)
        partitions = _partitions_of(places, files)
        options = reading.options
    with ParquetFile(files[0], options, limits=reading.limits) as opened:
        if as_json or format == "json":
            click.echo(json.dumps([*_describe_columns(opened, partitions)], indent=2))
        elif format == "tree":
            _print_tree(opened, ", ".join(sources), len(files), partitions)
        elif format == "arrow":
            for line in _arrow_schema(opened, partitions).to_string(show_field_metadata=False).splitlines():
                click.echo(escape_text(line))
        else:
            exact = format == "exact"
            fields = _arrow_schema(opened, partitions)
            types = [f"{_quote(field.name)} {ddl_type(field, exact)}{_not_null(field)}" for field in fields]
            click.echo(escape_text(",\n".join(types)).replace("\\n", "\n"))


def _print_table(table: str, format: str, storage: Storage) -> None:
    """Print the columns of a table, which its log lists."""
    from pqext.dataset.reading import scan
    from pqext.tables.conversion import type_name

    fields = scan(table, storage_options=storage.options() or None).schema
    if format == "arrow":
        lines = fields.to_string(show_field_metadata=False).splitlines()
    elif format in ("ddl", "exact"):
        lines = [
            f"{_quote(field.name)} {ddl_type(field, format == 'exact')}{_not_null(field)}{',' * (place < len(fields))}"
            for place, field in enumerate(fields, 1)
        ]
    else:
        types = {field.name: type_name(field) for field in fields}
        columns = [{"name": field.name, "type": types[field.name], "nullable": field.nullable} for field in fields]
        lines = [json.dumps(columns, indent=2)] if format == "json" else [table]
        if format == "tree":
            lines += [f"  {name}: {shorten(type, _MAX_TYPE)}" for name, type in types.items()]
    for line in lines:
        click.echo(line if format == "json" else escape_text(line))


def _partitions_of(locations: Sequence[Place], files: Sequence[Place]) -> Partitions | None:
    """Return the partition columns in the paths of ``files`` below ``locations``; None if all locations are files."""
    if all(isinstance(place, str) and place in files for place in locations):
        return None  # avoids importing the filter modules
    from pqext.dataset.table.partitions import partitions_of

    return partitions_of(locations, files)


def _arrow_schema(file: ParquetFile, partitions: Partitions | None) -> pa.Schema:
    return file.arrow_schema if partitions is None else partitions.complete_schema(file.arrow_schema)


def _partition_fields(partitions: Partitions | None) -> dict[str, pa.Field]:
    return {} if partitions is None else {field.name: field for field in partitions.schema}


def shredding_of(file: ParquetFile) -> dict[str, ShreddingSchema]:
    """Return the shredding schema of each VARIANT column of a file, by dotted path."""
    return {
        node.dotted_path: schema for node in _variants(file.schema.root) if (schema := _shredding(node)) is not None
    }


def _variants(node: SchemaNode) -> Iterator[SchemaNode]:
    for child in node.children:
        if child.logical_name == "VARIANT":
            yield child
        elif not child.is_leaf:
            yield from _variants(child)


def _shredding(node: SchemaNode) -> ShreddingSchema | None:
    """Return the shredding schema of a VARIANT column; None if its layout is invalid."""
    from pqext.core.base.errors import VariantError
    from pqext.core.options.read_write import ReadOptions
    from pqext.core.schema import shape
    from pqext.variant.shredding.schema import schema_of_storage

    try:
        return schema_of_storage(shape.from_node(node).storage_field(ReadOptions(shredded=True)).type)
    except VariantError:
        return None


def _type_name(node: SchemaNode) -> str:
    """Return the logical type of a node if it has one, otherwise its physical type, or "group" for a group."""
    from pqext.inspection.values import logical_type

    logical = logical_type(node.logical_type)
    if logical is not None:
        return logical
    return "group" if node.physical_type is None else node.physical_type.name


def _describe_columns(file: ParquetFile, partitions: Partitions | None) -> Iterator[dict[str, Any]]:
    """Yield a JSON object for each column. Partition columns replace columns of the file with the same name."""
    fields = _partition_fields(partitions)
    for node in file.schema.root.children:
        field = fields.pop(node.name, None)
        yield _describe(node) if field is None else _describe_partition(field)
    yield from map(_describe_partition, fields.values())


def _describe_partition(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": str(field.type).upper(), "repetition": "optional", "partition": True}


def _describe(node: SchemaNode) -> dict[str, Any]:
    from pqext.variant.shredding.schema import Untyped

    repetition = node.repetition.name.lower()
    description: dict[str, Any] = {"name": node.name, "type": _type_name(node), "repetition": repetition}
    if node.physical_type is not None:
        description["physical_type"] = node.physical_type.name
    if node.logical_name == "VARIANT":
        schema = _shredding(node)
        description["shredding"] = None if schema is None or isinstance(schema, Untyped) else str(schema)
    elif not node.is_leaf:
        description["fields"] = [_describe(child) for child in node.children]
    return description


def _print_tree(file: ParquetFile, sources: str, files: int, partitions: Partitions | None) -> None:
    from rich.text import Text
    from rich.tree import Tree

    heading = Text(escape_text(hide_temporary_path(str(file.path)) if files == 1 else sources), style="bold")
    if files > 1:
        heading.append(f": {files:,} files, the first is {escape_text(str(file.path))}", style="not bold dim")
    tree = Tree(heading, guide_style="dim")
    fields = _partition_fields(partitions)
    max_fields = MAX_FIELDS
    for node in file.schema.root.children:
        field = fields.pop(node.name, None)
        max_fields = _add_node(tree, node, max_fields) if field is None else _add_partition(tree, field, max_fields)
    for field in fields.values():
        max_fields = _add_partition(tree, field, max_fields)
    if not max_fields:
        tree.add(Text("and more; --format json lists all", style="dim"))
    print_rich(tree, heading.cell_len + 1)


def _add_partition(tree: Tree, field: pa.Field, max_fields: int) -> int:
    """Add a partition column to the tree unless ``max_fields`` is 0. Return how many more fields may be added."""
    from rich.text import Text

    if max_fields:
        text = Text(escape_text(field.name), style="bold")
        text.append(f" {str(field.type).upper().replace('DATE32[DAY]', 'DATE')}", style="not bold cyan")
        tree.add(text.append(" by folder", style="not bold dim"))
    return max(0, max_fields - 1)


def _add_node(tree: Tree, node: SchemaNode, max_fields: int) -> int:
    """Add ``node`` and its descendants, at most ``max_fields``, to the tree. Return how many more may be added."""
    from rich.text import Text

    from pqext.variant.shredding.schema import Untyped

    if not max_fields:
        return 0
    text = Text(escape_text(node.name), style="bold")
    text.append(f" {shorten(escape_text(_type_name(node)), _MAX_TYPE)}", style="not bold cyan")
    text.append(f" {node.repetition.name.lower()}", style="not bold dim")
    branch = tree.add(text)
    max_fields -= 1
    if node.logical_name == "VARIANT":
        schema = _shredding(node)
        description = (
            "invalid layout: see pqext verify" if schema is None
            else "not shredded" if isinstance(schema, Untyped)
            else f"shredded as {schema}"
        )
        branch.add(Text(shorten(escape_text(description), _MAX_TYPE), style="dim"))
        return max_fields
    for child in node.children:
        max_fields = _add_node(branch, child, max_fields)
    return max_fields


def _quote(name: str) -> str:
    from pqext.variant.shredding.schema import quote_name

    return quote_name(name)


def _not_null(field: pa.Field) -> str:
    return "" if field.nullable else " NOT NULL"


def ddl_type(field: pa.Field, exact: bool = False) -> str:
    """Return the type of a column as Spark DDL. Types that Spark lacks are replaced by a type for all values.

    With ``exact``, types that Spark lacks keep their unit, width and sign.
    """
    import pyarrow as pa

    from pqext.geo.types import type_of
    from pqext.variant.types import is_variant_type, storage_type

    spatial = type_of(field)
    if spatial is not None:
        return f"{'GEOMETRY' if spatial.planar else 'GEOGRAPHY'}({_srid(spatial.crs)})"
    type = storage_type(field.type)
    types = pa.types
    if is_variant_type(type):
        return "VARIANT"
    if types.is_dictionary(type):
        type = type.value_type
    if types.is_struct(type):
        fields = (f"{_quote(child.name)}: {ddl_type(child, exact)}{_not_null(child)}" for child in type)
        return f"STRUCT<{', '.join(fields)}>"
    if types.is_map(type):
        return f"MAP<{ddl_type(type.key_field, exact)}, {ddl_type(type.item_field, exact)}>"
    if types.is_nested(type):
        return f"ARRAY<{ddl_type(type.value_field, exact)}>"
    if exact and (name := _exact_type(type)) is not None:
        return name
    if types.is_decimal(type):
        return f"DECIMAL({type.precision},{type.scale})" if type.precision <= 38 else "STRING"
    if types.is_timestamp(type):
        return "TIMESTAMP_NTZ" if type.tz is None else "TIMESTAMP"
    if types.is_time(type):
        return "TIME(6)"
    return _PLAIN.get(str(type).removeprefix("large_").removesuffix("_view").partition("[")[0], "BINARY")


def _exact_type(type: pa.DataType) -> str | None:
    """Return the exact DDL of a type if Spark DDL would lose its unit, width or sign; None for other types."""
    import pyarrow as pa

    types = pa.types
    if types.is_decimal(type):
        return f"DECIMAL({type.precision},{type.scale})"
    if types.is_timestamp(type):
        return f"TIMESTAMP{'_NTZ' * (type.tz is None)}({_DIGITS[type.unit]})"
    if types.is_time(type):
        return f"TIME({_DIGITS[type.unit]})"
    if types.is_fixed_size_binary(type):
        return f"BINARY({type.byte_width})"
    if types.is_unsigned_integer(type) or types.is_float16(type):
        return {"halffloat": "FLOAT16"}.get(str(type), str(type).upper())
    return None


_DIGITS = {"s": 3, "ms": 3, "us": 6, "ns": 9}
"""Digits of the fraction of a second by the unit of a file."""
_PLAIN = {
    "bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT",
    "uint8": "SMALLINT", "uint16": "INT", "uint32": "BIGINT", "uint64": "DECIMAL(20,0)",
    "halffloat": "FLOAT", "float": "FLOAT", "double": "DOUBLE", "string": "STRING", "null": "VOID",
    "date32": "DATE", "date64": "DATE", "duration": "BIGINT", "binary": "BINARY", "fixed_size_binary": "BINARY",
}


def _srid(crs: str | None) -> str:
    """Return the SRID of a CRS in Spark: 4326 for None and OGC:CRS84, the code for EPSG, and "ANY" for others."""
    if crs is None or crs.upper() in ("OGC:CRS84", "EPSG:4326"):
        return "4326"
    authority, _, code = crs.partition(":")
    return code if authority.upper() == "EPSG" and code.isdigit() else "ANY"
