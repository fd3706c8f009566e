"""The options of a save: those of the writer, and those that say which files are written and replaced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any, cast, get_args

from pyspark.sql.types import StructType

from pqext.core.base.suggestions import FOREIGN_OPTIONS, did_you_mean, excerpt
from pqext.core.options.footer import Checkpoint, parse_checkpoint
from pqext.core.options.read_write import WriteOptions
from pqext.dataset.writing.dataset import PartitionOverwrite as PartitionOverwrite
from pqext.dataset.writing.part_files import UNDIVIDED
from pqext.dataset.writing.part_files import Division as Division
from pqext.spark.base.settings import CASE_SENSITIVE, codec_of
from pqext.spark.columns.names import Names
from pqext.spark.columns.shredding_choice import carried

_PATHS = frozenset({"path", "paths"})
_OF_SAVES = (
    "case_sensitive", "max_records_per_file", "merge_schema", "partition_by", "partition_overwrite", "storage_options",
    "summary_path", "target_file_bytes",
)
_SPARKS = {
    "casesensitive": "case_sensitive",
    "maxrecordsperfile": "max_records_per_file",
    "mergeschema": "merge_schema",
    "parquet.compression": "compression",
    "partitionoverwritemode": "partition_overwrite",
}
"""Options of Spark's own sources that mean the same."""
_JSON_EXAMPLES = {
    "geometry": '{"column": "OGC:CRS84"}',
    "key_value_metadata": '{"key": "value"}',
    "shredding": '{"column": "infer"}',
}
"""Options of the writer that are JSON objects, with an example of each."""


@dataclass(frozen=True)
class SaveOptions:
    """How a data frame is saved."""

    writer: Mapping[str, Any]
    """The fields of :class:`pqext.core.options.read_write.WriteOptions` that are given."""
    division: Division = UNDIVIDED
    partition_overwrite: PartitionOverwrite | None = None
    """None if neither an option nor a setting states it."""
    merge_schema: bool = False
    """Whether an append may add columns to the folder and widen types."""
    summary_path: str | None = None
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    """Credentials and the like of a store."""
    shredding_options: Mapping[str, Any] = field(default_factory=dict)
    """The part of the writer's ``shredding`` that is given as an option, not carried by columns."""


def save_options(
    schema: StructType, options: Mapping[str, str], settings: Mapping[str, str] = MappingProxyType({})
) -> SaveOptions:
    """The options of a save of a data frame of ``schema``: those that are given, and what its columns carry.

    Where both say how a column is shredded, the option takes precedence, as it does over ``settings``, which
    :func:`pqext.spark.base.settings.save_settings` reads. Raises ``ValueError`` for an unknown name or an unsuitable
    value, and ``VariantError`` as :func:`pqext.spark.columns.shredding_choice.carried` does.
    """
    of_save, of_writer = _told_apart(options)
    stated = {**settings, **of_save}.get("case_sensitive")
    is_case_sensitive = stated is not None and stated.lower() == "true"
    if stated is not None and not is_case_sensitive:
        _check_names(schema)
    by = tuple(map(Names.of(schema, is_case_sensitive).find, _names(of_save.get("partition_by", ()))))
    is_by_option = "partition_overwrite" in of_save
    for name, value in settings.items():
        (of_save if name in _OF_SAVES else of_writer).setdefault(name, value)
    parsed = write_options(of_writer)
    by_option = parsed.get("shredding", {})
    choices = {path: choice.options() for path, choice in carried(schema).items()}
    if choices:
        parsed["shredding"] = {**choices, **by_option}
    mode = of_save["partition_overwrite"].lower() if "partition_overwrite" in of_save else None
    if mode not in (None, *get_args(PartitionOverwrite)):
        raise ValueError(f"option partition_overwrite is static or dynamic, not {mode!r}")
    if mode == "dynamic" and not by and is_by_option:
        raise ValueError("option partition_overwrite=dynamic replaces partitions: name their columns in partition_by")
    division = Division(
        by, _number(of_save, "max_records_per_file", zero=None), _number(of_save, "target_file_bytes")
    )
    storage = storage_options(of_save["storage_options"]) if "storage_options" in of_save else None
    merge_schema = of_save.get("merge_schema", "false").lower()
    if merge_schema not in ("true", "false"):
        raise ValueError(f"option merge_schema is true or false, not {merge_schema!r}")
    overwrite = cast("PartitionOverwrite | None", mode if by else "static")
    return SaveOptions(
        parsed, division, overwrite, merge_schema == "true", of_save.get("summary_path"), storage, by_option
    )


def _check_names(schema: StructType) -> None:
    """Raise ``ValueError`` if names of columns differ in case only, as Spark's sinks do."""
    columns: dict[str, str] = {}
    for name in schema.names:
        other = columns.setdefault(name.lower(), name)
        if other != name:
            raise ValueError(
                f"columns {other!r} and {name!r} have the same name but for the case of their letters, and Spark could "
                f"not read the files: rename one, or set {CASE_SENSITIVE}=true"
            )


def write_options(options: Mapping[str, str]) -> dict[str, Any]:
    """The writer's options out of a data source's, which are all text.

    Names are those of :class:`pqext.core.options.read_write.WriteOptions`; a value is a word, a number, ``true`` or
    ``false``, or JSON where the option takes a mapping. ``profile`` is ``spark`` unless ``none`` is asked for, since
    Spark's own reader loses rows of other files (:mod:`pqext.core.schema.types.spark_profile`). Raises ``ValueError``
    for an unknown name or an unsuitable value.
    """
    known = {one.name for one in fields(WriteOptions)}
    parsed: dict[str, Any] = {}
    for key, text in options.items():
        name = key.lower()
        if name in _PATHS:
            continue
        if name not in known:
            every = sorted([*known, *_OF_SAVES])
            ours = FOREIGN_OPTIONS["write"].get(name) or "data source pqext writes with " + ", ".join(every)
            raise ValueError(f"unknown option {key!r}{did_you_mean(key, every) or f'; {ours}'}")
        parsed[name] = _checkpoint(_parse_option(text)) if name == "checkpoint" else _parse_option(text)
        if name == "compression" and isinstance(parsed[name], str):
            parsed[name] = codec_of(parsed[name])
        if name in _JSON_EXAMPLES and not isinstance(parsed[name], dict):
            raise ValueError(f"option {name} is JSON text, as in {_JSON_EXAMPLES[name]}, not {excerpt(text)!r}")
    if parsed.get("durable"):
        raise ValueError("option durable is for a file that one process writes: those of tasks wait for the commit")
    if str(parsed.get("profile")).lower() == "none" and "profile" in parsed:
        parsed["profile"] = None
    return with_profile(parsed, "option profile=none")


def with_profile(options: dict[str, Any], lifted_by: str) -> dict[str, Any]:
    """Checked options of the writer, of profile ``spark`` unless they name one; ``ValueError`` says what lifts that."""
    WriteOptions(**options)
    if "profile" in options:
        return options
    options = {**options, "profile": "spark"}
    try:
        WriteOptions(**options)
    except ValueError as error:
        raise ValueError(f"{error}, which is the default in Spark; {lifted_by} lifts it") from None
    return options


def storage_options(text: str) -> dict[str, Any]:
    """Option ``storage_options``. Raises ``ValueError``, which does not show what was given."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(one, str | bool | int | float) for one in found.values()):
        raise ValueError("option storage_options: expected a JSON object of names and values") from None
    return found


def is_of_saves(name: str) -> bool:
    """Is ``name`` an option of saves?"""
    plain = name.lower()
    of_both = plain in ("storage_options", "case_sensitive")
    is_known = plain in _OF_SAVES or plain in _SPARKS or any(one.name == plain for one in fields(WriteOptions))
    return is_known and not of_both


def _told_apart(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    of_save: dict[str, str] = {}
    of_writer: dict[str, str] = {}
    for key, text in options.items():
        name = _SPARKS.get(key.lower(), key.lower())
        known = of_save if name in _OF_SAVES else of_writer
        if known.get(name, text) != text:
            raise ValueError(f"option {name} is given twice")
        known[name] = text
    return of_save, of_writer


def _names(given: Any) -> tuple[str, ...]:
    """Names of columns: a JSON list, or text with commas between them."""
    if isinstance(given, str):
        try:
            found = json.loads(given)
        except ValueError:
            found = None
        given = found if isinstance(found, list) else [name.strip() for name in given.split(",") if name.strip()]
    if not all(isinstance(name, str) and name for name in given):
        raise ValueError(f"option partition_by is a list of columns, not {given!r}")
    return tuple(given)


def _number(options: Mapping[str, str], name: str, zero: int | None = 0) -> int | None:
    if name not in options:
        return None
    try:
        number = int(options[name])
    except ValueError:
        raise ValueError(f"option {name} is a whole number, not {options[name]!r}") from None
    return number if number else zero  # Spark's 0 is no limit


def as_text(value: Any) -> str:
    """A value of an option as :func:`write_options` reads it."""
    if isinstance(value, Checkpoint):
        value = {name: amount for name, amount in asdict(value).items() if amount is not None}
    return value if isinstance(value, str) else json.dumps(value)


def _checkpoint(given: Any) -> Any:
    try:
        return Checkpoint(**given) if isinstance(given, dict) else parse_checkpoint(str(given))
    except (ValueError, TypeError) as error:
        raise ValueError(f"option {error}" if isinstance(given, str) else f"option checkpoint: {error}") from None


def _parse_option(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return {"true": True, "false": False}.get(text.strip().lower(), text)
    return text if value is None or isinstance(value, str) else value
