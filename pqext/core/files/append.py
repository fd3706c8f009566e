"""Row groups appended to a file that is there: behind its old footer, under a new one that lists all of them.

The old footer stays in the file, and a checkpoint of it is the first that is appended, so that a writer that dies
loses nothing: ``pqext.open(path, recover=True)`` and :func:`pqext.recover` find the old rows. Bytes that are in the
file never change. Spec: "File format" (the metadata is apart from the data), "Error recovery".
"""

from __future__ import annotations

import pyarrow as pa

from pqext.core.arrow_schema.text import KEY, Unreadable, parse
from pqext.core.checkpoint_choice import Checkpoint
from pqext.core.checkpoints import Checkpoints
from pqext.core.errors import CorruptFileError, UnsupportedError
from pqext.core.extension.places import is_place
from pqext.core.extension.structure import extensions as extensions_of
from pqext.core.files.footer_merge import FooterMerge
from pqext.core.files.rewrite import plain_footer
from pqext.core.footer import Footer
from pqext.core.footer_choice import check_beside
from pqext.core.footer_forms import form_of
from pqext.core.inputs import plain_layout
from pqext.core.limits import DEFAULT_LIMITS
from pqext.core.metadata import ColumnChunk, FileMetaData, KeyValue, LogicalType, RowGroup, SchemaElement, Type
from pqext.core.options import WriteOptions
from pqext.core.source import Source
from pqext.core.sources.opening import open_source
from pqext.core.thrift import decode, encode
from pqext.core.types import logical

_LEGACY = ("org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96")
"""Keys by which Spark reads all dates or timestamps of a file in another calendar."""


class AppendedFile:
    """The file at ``path`` as it was before, and what becomes of its footer.

    Raises ``UnsupportedError`` for files with encrypted parts, chunks in other files, an extension of the footer, or
    dates in Spark's old calendar, ``CorruptFileError`` for what is no Parquet file, and ``ValueError`` for options
    that would speak of the old row groups.
    """

    def __init__(self, path: str, options: WriteOptions) -> None:
        if options.encryption is not None:
            raise ValueError("encrypted row groups cannot be appended to a file: write another file beside it")
        if options.checkpoint is not None:
            raise ValueError("an append has no checkpoints: leave out checkpoint, and append in several steps")
        for place in options.extensions:
            if is_place(place):
                raise ValueError(f"extensions[{place!r}] is not a column's: an append takes those of columns only")
        self._path, self._given = path, options.key_value_metadata
        source = open_source(path)
        try:
            found = _footer(source)
            # What is read by a jump table is read from a file that is about to grow: a copy is not.
            self._old, _ = decode(FileMetaData, encode(found.metadata))
            self.size = source.size
            self.form = form_of(source)
            check_beside(self.form, encrypted=False, extended=False, profile=options.profile)
        finally:
            source.close()
        self._refuse_others()

    def _refuse_others(self) -> None:
        def refused(what: str, advice: str) -> UnsupportedError:
            return UnsupportedError(f"{what}: {advice}", feature="appending to such files", path=self._path)

        keys = {pair.key for pair in self._old.key_value_metadata or ()}
        if extensions_of(self._old) is not None:
            raise refused(
                "the footer has an extension, which may speak of the whole file",
                "pqext rewrite-footer --drop-extensions takes it away",
            )
        if legacy := keys & {*_LEGACY}:
            raise refused(f"the file has the key {min(legacy)!r}, by which new dates would be misread", "write it anew")
        if any(chunk.file_path is not None for group in self._old.row_groups for chunk in group.columns):
            raise refused("a column chunk lies in another file", "append to that one")

    def check(self, footer: FileMetaData) -> None:
        """Raise ``ValueError`` where row groups under ``footer`` do not fit those of the file."""
        some = RowGroup(columns=[ColumnChunk(file_offset=0)], total_byte_size=0, num_rows=1)
        footer.row_groups = [some]  # as if it had rows: what it tells of columns counts
        self._merge(footer).finish([])

    def checkpoint(self) -> bytes:
        """A checkpoint of the old footer, to be written behind it."""
        count = len(self._old.row_groups)
        return Checkpoints(Checkpoint(row_groups=1)).made(encode(self._old), count, self.size)

    def _merge(self, footer: FileMetaData) -> FooterMerge:
        old, _ = decode(FileMetaData, encode(self._old))
        old.key_value_metadata = [
            pair for pair in old.key_value_metadata or () if pair.key not in self._given
        ] or None
        mine, theirs = list(old.schema), list(footer.schema)
        if len(mine) == len(theirs):
            footer.schema = [_alike(*pair) for pair in zip(mine, theirs, strict=True)]
        noted, own = _noted(old), _noted(footer)
        # The old rows keep their types.
        pairs = [noted, *(pair for pair in footer.key_value_metadata or () if pair.key != KEY)]
        footer.key_value_metadata = [pair for pair in pairs if pair is not None] or None
        merge = FooterMerge("merge")
        merge.add(old, self._path)
        merge.add(footer, "what is appended")
        if noted is not None and own is not None and not _same_types(noted.value, own.value):
            raise ValueError(
                f"the Arrow types differ from those that {self._path} notes for the same Parquet schema: cast to "
                "pqext.open(path).schema_arrow, or pass arrow_schema=False"
            )
        return merge

    def merged(self, footer: FileMetaData) -> FileMetaData:
        """The footer of the file with the row groups of ``footer`` behind its own."""
        old, _ = decode(FileMetaData, encode(self._old))
        new, _ = decode(FileMetaData, encode(footer))
        merge = self._merge(new)
        groups = []
        for metadata in (old, new):
            added = list(metadata.row_groups)
            for group in added:
                group.columns = list(group.columns)
            merge.forget_foreign_bounds(metadata, [group.columns for group in added])
            groups += added
        # Some readers refuse a file in which not all have a number, or none.
        are_numbered = all(group.ordinal is not None for group in old.row_groups) and len(groups) <= 1 << 15
        for at, group in enumerate(groups):
            group.ordinal = at if are_numbered else None
        return merge.finish(groups)


def _footer(source: Source) -> Footer:
    try:
        return plain_footer(source, DEFAULT_LIMITS)
    except CorruptFileError as error:
        advice = "where a writer died, `pqext recover` makes a whole file of what is left"
        raise CorruptFileError(f"{error.message}; {advice}", path=source.path) from error


def _alike(old: SchemaElement, new: SchemaElement) -> SchemaElement:
    """``old`` where ``new`` says the same in other words, as writers do that know only one kind of annotation."""
    same = all(
        getattr(old, name) == getattr(new, name)
        for name in ("name", "type", "type_length", "repetition_type", "num_children")
    )
    return old if same and new.field_id in (None, old.field_id) and _meaning(old) == _meaning(new) else new


def _noted(footer: FileMetaData) -> KeyValue | None:
    """The note of Arrow types."""
    return next((pair for pair in footer.key_value_metadata or () if pair.key == KEY), None)


def _same_types(mine: str | None, theirs: str | None) -> bool:
    """Do two notes give the same types, whatever their layouts?"""
    if mine is None or theirs is None:
        return True
    try:
        columns, others = parse(mine), parse(theirs)
    except Unreadable:
        return True  # readers pass over it
    return [_plain(field.type) for field in columns] == [_plain(field.type) for field in others]


def _plain(type: pa.DataType) -> pa.DataType:
    """``type`` in its plain layout, that of a dictionary's values for a dictionary."""
    return plain_layout(type.value_type if pa.types.is_dictionary(type) else type)


def _meaning(element: SchemaElement) -> LogicalType | None:
    """The logical type; None for the integers that a physical type has anyway."""
    found = logical.from_element(element)
    widths: dict[int | None, int] = {Type.INT32: 32, Type.INT64: 64}
    integer = None if found is None else found.INTEGER
    return None if integer is not None and integer.isSigned and integer.bitWidth == widths.get(element.type) else found
