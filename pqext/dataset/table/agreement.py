"""Schema strategy for files with the same schema: the first file determines the schema of the result."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from pqext.core.base.errors import ParquetError, SchemaMismatchError, add_location
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.arrow_schema.stored_schema import StoredSchema
from pqext.core.schema.arrow_schema.types import durations
from pqext.core.schema.nodes import Schema
from pqext.core.schema.types.marks import marks
from pqext.dataset.expressions import Expression
from pqext.dataset.files.sources import source_name
from pqext.dataset.table.file_request import FileRequest, SchemaStrategy, TableRequest
from pqext.dataset.table.unified_schema import are_unifiable, describe_marks
from pqext.geo.geoparquet_types import strip_extents
from pqext.geo.types import type_of

_COUNTED = FileRequest((), (), None, pa.schema([]))
_SEPARATELY = "; read the files separately"
_UNION = '; schema="union" reads files whose schemas differ as one table'


class FirstFileSchema(SchemaStrategy):
    """Schema strategy in which the first opened file determines the schema, and other files must have the same schema.

    Types that Parquet does not distinguish follow the first file, if they represent the same values.
    """

    def __init__(self, table_request: TableRequest) -> None:
        super().__init__(table_request)
        self._schema: pa.Schema | None = None
        self._plain: pa.Schema | None = None
        self._types = StoredSchema()
        self._first = ""
        self._alike: tuple[Schema, StoredSchema, FileRequest] | None = None
        self._suited: Schema | None = None
        self._geometries: dict[str, tuple[pa.Field, str]] = {}

    @property
    def schema(self) -> pa.Schema | None:
        """Schema of the first file; None before the file is opened."""
        return self._schema

    def request_file(self, position: int, file: ParquetFile, filter: Expression | None) -> FileRequest:
        """Return the request for a file. Raises ``ValueError`` if the schema of the file differs."""
        alike, own = self._alike, (file.schema, file.stored_schema)
        # Files with the same schema share the object.
        if alike is not None and alike[0] is own[0] and alike[1].has_same_text(own[1]):
            return alike[2] if alike[2].filter is filter else replace(alike[2], filter=filter)
        schema = self._match_schema(position, file)
        file_request = FileRequest(
            self.table_request.columns_of(file), self.table_request.computed_columns, filter, schema
        )
        if file.stored_schema is own[1]:
            self._alike = (*own, file_request)
        return file_request

    def request_count(self, position: int, file: ParquetFile, filter: Expression | None) -> FileRequest:
        """Return the request that counts matching rows. Types of unselected columns are not compared."""
        if self.table_request.result is None:
            return _COUNTED if filter is None else replace(_COUNTED, filter=filter)
        return self.request_file(position, file, filter)

    def check_filter(self, file: ParquetFile) -> None:
        """Raise the errors of :func:`bind` if a file does not support the filter."""
        if file.schema is self._suited:
            return
        if len(self.table_request.sources) > 1:
            self._check_geometries(file)
        try:
            self.table_request.check_filter(file)
        except ParquetError:
            raise
        except (ValueError, TypeError) as error:
            if len(self.table_request.sources) == 1 or (isinstance(error, TypeError) and self._suited is None):
                raise  # no file has suited yet, so that the condition is wrong rather than the file
            reason, line_break, position = str(error).partition("\n")
            advice = "" if self._suited is None else _UNION
            kind = TypeError if isinstance(error, TypeError) else ValueError
            located = add_location(reason, f"file {file.path}")
            raise kind(f"{located}{advice}{line_break}{position}") from None
        self._suited = file.schema

    def _check_geometries(self, file: ParquetFile) -> None:
        """Raise ``SchemaMismatchError`` if geometries in conditions or computed values differ in CRS or edges."""
        root = file.schema.root
        for name in self.table_request.compared_columns:
            node = root.child(name)
            if node is None or node.logical_name not in ("GEOMETRY", "GEOGRAPHY") or not root.is_unique(name):
                continue
            (shape,) = file.select([name])
            field = shape.field(file.options)
            if type_of(field) is None:
                continue
            first, path = self._geometries.setdefault(name, (field, str(file.path)))
            if type_of(first) != type_of(field):
                raise _marks_mismatch(name, first, field, path, str(file.path), _SEPARATELY)

    def _match_schema(self, position: int, file: ParquetFile) -> pa.Schema:
        if self._schema is None and len(self.table_request.sources) > 1 and file.stored_schema.has_narrow_indices:
            file.set_stored_types(file.stored_schema.widen_indices())
        schema = plain = self._schema_of(position, file)
        if self._schema is not None and self._is_known(schema) and file.stored_schema.has_same_text(self._types):
            return self._schema
        sources = self.table_request.sources
        if len(sources) > 1 and not file.stored_schema.is_empty:
            own = file.set_stored_types(StoredSchema())
            plain = self.table_request.schema_of(file)
            file.set_stored_types(own)
        if self._schema is None or self._plain is None:
            self._schema = strip_extents(schema) if len(sources) > 1 else schema
            self._plain, self._types, self._first = plain, file.stored_schema, source_name(sources[position])
        else:
            first, other = self._first, source_name(sources[position])
            check_agreement(self._plain, plain, first, other, advice=_UNION)
            for field in self._schema:
                there = schema.field(field.name).type
                if durations(field.type) != durations(there):
                    raise SchemaMismatchError(
                        f"schemas differ: column {field.name!r} is {field.type} in {first} and {there} in {other}"
                        + _SEPARATELY
                    )
            file.set_stored_types(self._types)
        return self._schema

    def _schema_of(self, position: int, file: ParquetFile) -> pa.Schema:
        try:
            return self.table_request.schema_of(file)
        except ValueError as error:
            if self._schema is None:
                raise
            name = source_name(self.table_request.sources[position])
            reason = f"schemas differ: {name} compared with {self._first}: {error}{_UNION}"
            raise SchemaMismatchError(reason) from None

    def _is_known(self, schema: pa.Schema) -> bool:
        """Return whether the columns of ``schema`` equal the columns of the result, in the same order."""
        return bool(strip_extents(schema).equals(self._schema, check_metadata=True))


def check_agreement(
    first: pa.Schema, other: pa.Schema, first_path: str, other_path: str, *, advice: str = ""
) -> None:
    """Raise ``ValueError`` unless both schemas have columns with the same names, types and metadata.

    ``advice`` is appended to the message if the schemas can be unified, and advice to read the files separately if not.
    """
    if len(set(first.names)) < len(first.names):
        raise SchemaMismatchError(
            f"schemas cannot be matched by name: {first_path} has duplicate column names, but {other_path} has other "
            "columns; read each file separately"
        )
    if advice and not are_unifiable([first, other]):
        advice = _SEPARATELY
    missing, extra = set(first.names) - set(other.names), set(other.names) - set(first.names)
    if missing or extra:
        lacks = [f"lacks {', '.join(sorted(missing))}"] if missing else []
        has = [f"has additional columns {', '.join(sorted(extra))}"] if extra else []
        result = f"{other_path} {' and '.join(lacks + has)}"
        raise SchemaMismatchError(f"schemas differ: {result}, compared with {first_path}{advice}")
    for field in first:
        there = other.field(field.name)
        if field.type != there.type:
            raise SchemaMismatchError(
                f"schemas differ: column {field.name!r} is {field.type} in {first_path} "
                f"and {there.type} in {other_path}{advice}"
            )
        if marks(field) != marks(there):
            raise _marks_mismatch(field.name, field, there, first_path, other_path, advice)


def _marks_mismatch(
    name: str, first: pa.Field, other: pa.Field, first_path: str, other_path: str, advice: str
) -> SchemaMismatchError:
    first_type, other_type = describe_marks(first, other)
    return SchemaMismatchError(
        f"schemas differ: column {name!r} has {first_type} in {first_path}, but {other_type} in {other_path}{advice}"
    )
