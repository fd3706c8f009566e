"""Parse the options of a save: options of the writer, and options that select the files to write and replace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any, cast, get_args

from pyspark.sql.types import StructField, StructType

from pqext.core.base.suggestions import FOREIGN_OPTIONS, did_you_mean, excerpt
from pqext.core.options.layout import Checkpoint, parse_checkpoint
from pqext.core.options.read_write import RebaseMode, WriteOptions
from pqext.dataset.table_snapshot import is_table
from pqext.dataset.writing.dataset import PartitionOverwrite as PartitionOverwrite
from pqext.dataset.writing.part_files import UNDIVIDED
from pqext.dataset.writing.part_files import Division as Division
from pqext.spark.base.settings import CASE_SENSITIVE, parse_codec
from pqext.spark.columns.names import Names
from pqext.spark.columns.recorded_schema import is_collated
from pqext.spark.columns.shredding_choice import column_choices

_PATHS = frozenset({"path", "paths"})
_OF_SAVES = (
    "allow_undeclared_shredding", "case_sensitive", "datetime_rebase_mode", "max_records_per_file", "merge_schema",
    "partition_by", "partition_overwrite", "requires_empty", "storage_options", "summary_path", "target_file_bytes",
)
_SPARK_NAMES = {
    "casesensitive": "case_sensitive",
    "maxrecordsperfile": "max_records_per_file",
    "mergeschema": "merge_schema",
    "parquet.compression": "compression",
    "partitionoverwritemode": "partition_overwrite",
    "secret_storage_options": "storage_options",
}
"""Options of Spark's own sources, with the equivalent options of pqext, and the name that Spark redacts."""


_JSON_EXAMPLES = {
    "geometry": '{"column": "OGC:CRS84"}',
    "key_value_metadata": '{"key": "value"}',
    "shredding": '{"column": "infer"}',
}
"""Writer options that are JSON objects, with an example of each."""


@dataclass(frozen=True)
class SaveOptions:
    """Parsed options of a save."""

    writer: Mapping[str, Any]
    """Fields of :class:`pqext.core.options.read_write.WriteOptions` that are specified."""
    division: Division = UNDIVIDED
    partition_overwrite: PartitionOverwrite | None = None
    """Mode of overwriting partitions; None if neither an option nor a setting specifies it."""
    merge_schema: bool = False
    """Whether an append may add columns to the folder and widen types."""
    summary_path: str | None = None
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    """Credentials and other options of an object store."""
    shredding_options: Mapping[str, Any] = field(default_factory=dict)
    """Shredding from option ``shredding``, without the shredding in the metadata of columns."""
    rebase_mode: RebaseMode = "corrected"
    """Spark's ``datetimeRebaseModeInWrite``."""
    folder_names: Mapping[str, str] = field(default_factory=dict)
    """Names of the partition columns in folders, by column."""
    requires_empty: bool = False
    """Whether the commit fails if the folder contains files, or the table exists."""
    allow_undeclared_shredding: bool = False
    """Whether files of a table may be shredded although the table cannot declare it."""

    def name_folders(self, schema: StructType) -> StructType:
        """Rename the partition columns to their spelling in ``partition_by``, as Spark's writers do."""
        names = self.folder_names
        return StructType([
            StructField(names.get(column.name, column.name), column.dataType, column.nullable, column.metadata)
            for column in schema
        ])


def parse_save_options(
    schema: StructType, options: Mapping[str, str], settings: Mapping[str, str] = MappingProxyType({})
) -> SaveOptions:
    """Parse the options of a save, and add defaults from ``settings`` and the shredding in the metadata of columns.

    Options take precedence over ``settings`` (:func:`pqext.spark.base.settings.save_settings`) and metadata. Raises
    ``ValueError`` for an unknown option or an invalid value, and ``VariantError`` as
    :func:`pqext.spark.columns.shredding_choice.column_choices` does.
    """
    of_save, of_writer = _split_options(options)
    case = {**settings, **of_save}.get("case_sensitive")
    is_case_sensitive = case is not None and case.lower() == "true"
    if case is not None and not is_case_sensitive:
        _check_names(schema)
    by = tuple(_parse_names(of_save.get("partition_by", ())))
    columns = tuple(map(Names.from_schema(schema, is_case_sensitive).find, by))
    if len(set(columns)) < len(columns):
        by = columns  # an error, which names the column
    _check_partition_types(schema, columns)
    is_by_option = "partition_overwrite" in of_save
    for name, value in settings.items():
        if name in _OF_SAVES:
            of_save.setdefault(name, value)
        elif name not in of_writer:
            of_writer[name] = parse_codec(value, is_setting=True) if name == "compression" else value
    parsed = write_options(of_writer)
    by_option = parsed.get("shredding", {})
    choices = {path: choice.options() for path, choice in column_choices(schema).items()}
    if choices:
        parsed["shredding"] = {**choices, **by_option}
    mode = of_save["partition_overwrite"].lower() if "partition_overwrite" in of_save else None
    if mode not in (None, *get_args(PartitionOverwrite)):
        raise ValueError(f"option partition_overwrite must be static or dynamic, not {mode!r}")
    if mode == "dynamic" and not by and is_by_option and not is_table(options.get("path")):
        raise ValueError("option partition_overwrite=dynamic replaces partitions: name their columns in partition_by")
    division = Division(
        by, _parse_number(of_save, "max_records_per_file", zero_value=None), _parse_number(of_save, "target_file_bytes")
    )
    storage = parse_storage_options(of_save["storage_options"]) if "storage_options" in of_save else None
    rebase_mode = of_save.get("datetime_rebase_mode", "corrected").lower()
    if rebase_mode not in get_args(RebaseMode):
        raise ValueError(f"option datetime_rebase_mode must be one of {get_args(RebaseMode)}, not {rebase_mode!r}")
    overwrite = cast("PartitionOverwrite | None", mode if by else "static")
    return SaveOptions(
        parsed, division, overwrite, _parse_flag(of_save, "merge_schema"), of_save.get("summary_path"), storage,
        by_option, cast("RebaseMode", rebase_mode), dict(zip(columns, by, strict=True)),
        of_save.get("requires_empty") == "true",
        _parse_flag(of_save, "allow_undeclared_shredding"),
    )


def stated_partition_overwrite(options: Mapping[str, str]) -> str | None:
    """Return the partition overwrite mode in the options of a save; None if the option is not set."""
    mode = _split_options(options)[0].get("partition_overwrite")
    return None if mode is None else mode.lower()


def _check_partition_types(schema: StructType, columns: tuple[str, ...]) -> None:
    """Raise ``TypeError`` if a partition column has a collation, as Spark's writers do."""
    for column in schema:
        if column.name in columns and is_collated(column.dataType):
            raise TypeError(
                f"INVALID_PARTITION_COLUMN_DATA_TYPE: column {column.name!r} of type {column.dataType.simpleString()} "
                'cannot name folders, which do not store its collation: cast it to "string collate UTF8_BINARY"'
            )


def _check_names(schema: StructType) -> None:
    """Raise ``ValueError`` if column names differ only in case, as Spark's writers do."""
    columns: dict[str, str] = {}
    for name in schema.names:
        other = columns.setdefault(name.lower(), name)
        if other != name:
            raise ValueError(
                f"columns {other!r} and {name!r} differ in case only, so Spark could not read the files: rename one, "
                f"or set {CASE_SENSITIVE}=true"
            )


def write_options(options: Mapping[str, str]) -> dict[str, Any]:
    """Parse the writer's options, which are fields of :class:`pqext.core.options.read_write.WriteOptions`.

    A value is a word, a number, ``true``, ``false``, or JSON if the option is a mapping. ``profile`` is ``spark`` by
    default, because Spark's own reader loses rows of other files (:mod:`pqext.core.schema.types.spark_profile`). Raises
    ``ValueError`` for an unknown option or an invalid value.
    """
    known = {field.name for field in fields(WriteOptions)}
    parsed: dict[str, Any] = {}
    for key, text in options.items():
        name = key.lower()
        if name in _PATHS:
            continue
        if name not in known:
            every = sorted([*known, *_OF_SAVES])
            ours = FOREIGN_OPTIONS["write"].get(name) or "data source pqext writes with " + ", ".join(every)
            raise ValueError(f"unknown option {key!r}{did_you_mean(key, every) or f'; {ours}'}")
        parsed[name] = _parse_checkpoint(_parse_option(text)) if name == "checkpoint" else _parse_option(text)
        if name == "geoparquet" and isinstance(parsed[name], float):
            parsed[name] = text.strip()  # a GeoParquet version
        if name == "compression" and isinstance(parsed[name], str):
            parsed[name] = parse_codec(parsed[name])
        if name in _JSON_EXAMPLES and not isinstance(parsed[name], dict):
            raise ValueError(f"option {name} must be JSON text, as in {_JSON_EXAMPLES[name]}, not {excerpt(text)!r}")
    if parsed.get("durable"):
        raise ValueError(
            "option durable is not supported by Spark saves, because the commit publishes the files of tasks: omit it"
        )
    if str(parsed.get("profile")).lower() == "none" and "profile" in parsed:
        parsed["profile"] = None
    return add_profile(parsed, "option profile=none")


def add_profile(options: dict[str, Any], override_option: str) -> dict[str, Any]:
    """Validate writer options, and add profile ``spark``. Errors recommend ``override_option`` to omit the profile."""
    WriteOptions(**options)
    if "profile" in options:
        return options
    options = {**options, "profile": "spark"}
    try:
        WriteOptions(**options)
    except ValueError as error:
        raise ValueError(str(error).replace('omit profile="spark"', f"pass {override_option}")) from None
    return options


def parse_storage_options(text: str) -> dict[str, Any]:
    """Parse option ``storage_options``. The message of a ``ValueError`` omits the value, which may contain secrets."""
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, dict) or not all(isinstance(item, str | bool | int | float) for item in parsed.values()):
        raise ValueError(
            "option storage_options must be a JSON object whose values are strings, numbers or booleans"
        ) from None
    return parsed


def is_save_option(name: str) -> bool:
    """Return whether ``name`` is an option of saves only."""
    plain = name.lower()
    if plain in ("storage_options", "case_sensitive", "datetime_rebase_mode"):
        return False
    return plain in _OF_SAVES or plain in _SPARK_NAMES or any(field.name == plain for field in fields(WriteOptions))


def _split_options(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split options into save options and writer options."""
    of_save: dict[str, str] = {}
    of_writer: dict[str, str] = {}
    for key, text in options.items():
        name = _SPARK_NAMES.get(key.lower(), key.lower())
        split = of_save if name in _OF_SAVES else of_writer
        if split.get(name, text) != text:
            raise ValueError(f"option {name} is set twice, under different names")
        split[name] = text
    return of_save, of_writer


def _parse_names(value: Any) -> tuple[str, ...]:
    """Return the column names in a JSON list or a comma-separated string."""
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = None
        value = parsed if isinstance(parsed, list) else [name.strip() for name in value.split(",") if name.strip()]
    if not all(isinstance(name, str) and name for name in value):
        raise ValueError(f"option partition_by must be a list of columns, not {value!r}")
    return tuple(value)


def _parse_flag(options: Mapping[str, str], name: str) -> bool:
    value = options.get(name, "false").lower()
    if value not in ("true", "false"):
        raise ValueError(f"option {name} must be true or false, not {value!r}")
    return value == "true"


def _parse_number(options: Mapping[str, str], name: str, zero_value: int | None = 0) -> int | None:
    if name not in options:
        return None
    try:
        number = int(options[name])
    except ValueError:
        raise ValueError(f"option {name} must be an integer, not {options[name]!r}") from None
    return number if number else zero_value  # in Spark, 0 means no limit


def encode_option(value: Any) -> str:
    """Format the value of an option for :func:`write_options`."""
    if isinstance(value, Checkpoint):
        value = {name: amount for name, amount in asdict(value).items() if amount is not None}
    return value if isinstance(value, str) else json.dumps(value)


def _parse_checkpoint(value: Any) -> Any:
    try:
        return Checkpoint(**value) if isinstance(value, dict) else parse_checkpoint(str(value))
    except (ValueError, TypeError) as error:
        raise ValueError(f"option {error}" if isinstance(value, str) else f"option checkpoint: {error}") from None


def _parse_option(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return {"true": True, "false": False}.get(text.strip().lower(), text)
    return text if value is None or isinstance(value, str) else value
