"""Filters, options, paths, URLs and files of text: what a caller or a user passes on."""

from __future__ import annotations

import io
import json
import random
import re
import tempfile
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
from click.testing import CliRunner
from hostile_bases import COUNT, base
from hostile_calls import DOUBLES, Call, change_bytes, change_text, integer, sample, word
from hostile_geometries import JSON_TOKENS, draw_feature
from hostile_variants import PATHS, TYPES, draw_document

import pqext
from pqext import filters, geo, variant
from pqext.cli import app
from pqext.core.io.sources.locations import locate

SQL = (
    "c > 1", "c between 1 and 2 and d is not null", "d like '%a_' or not (c in (1, 2, null))", "v:$.a::double >= 2.5",
    "st_intersects(p, st_geomfromtext('POINT (1 2)'))", "cast(c as string) = 'x'", "c = date '2024-01-01'",
    "list_length(c) > 1 and starts_with(d, 'a')", "st_distance(p, st_point(1, 2)) < 3", "isnan(c) = true",
    "st_within(p, box(0, 0, 1, 1))", 'c + 1 * -2 / 3 % 4 > 0.5 and "e.f" <> `g`', "coalesce(c, 1) = 1",
    "c = timestamp '2024-01-01 00:00:00+01:00'", "v:$.c[0]::string ilike 'X%'", "try_cast(c as int) is null",
)  # fmt: skip
TOKENS = ("(", ")", ",", " and ", " or ", " not ", "null", "'", '"', "`", "::", ":", "$", "--", "/*", "*/", ";",
          "1e999",
          "0x", "interval '1' day", "select", "in ()", "case when", "date ''", "timestamp '9999999-01-01'",
          "st_buffer(p, 1)",
          "st_geomfromtext('", "decimal(99, 99)", "\\", "?", "@", "%", "x''", "(" * 400, "not " * 1200, "-" * 500,
          "- " * 800, "c = 1 or " * 900, "[0]", "{", "9" * 400)  # fmt: skip
TREES = (
    '{"op":">=","column":["c"],"value":5}', '{"op":"and","args":[{"op":"is_null","column":["c"]}]}',
    '{"op":"in","column":["c"],"values":[1,"x",null]}',
    '{"op":"not","args":[{"op":"=","column":["d"],"value":{"date":"x"}}]}',
)  # fmt: skip
OPERATORS = ("=", "==", "!=", "<", ">", ">=", "in", "not in", "like", "is", "", None, 1)
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1 << 70, 1.5, float("nan"), "", "x", b"", b"\xff", (), [], {}, [[]], set(), object(), int, "1",
    [None],
    {"a": 1}, {1: "a"}, "\ud800", "auto", "snappy", ["c"], {"c": "snappy"}, {"c": None}, {"c": {"c": 1}}, lambda: 1,
    pa.int32(), pa.schema([]), range(3), 1 << 31, 10**30, "infer",
)  # fmt: skip
WRITE = tuple(pqext.WriteOptions.__dataclass_fields__)
READ = tuple(pqext.ReadOptions.__dataclass_fields__)
SCAN = ("columns", "filter", "schema", "on_invalid", "partitioning", "partition_types", "include_file_paths",
        "include_row_numbers", "timezone", "limits", "options", "ignore_table_format")  # fmt: skip
TABLE = pa.table({"c": [1, None, 3], "d": ["x", "y", None]})


def draw_literal(chance: random.Random) -> Any:
    """Draw a value to compare a column with."""
    return chance.choice((*VALUES, *DOUBLES, integer(chance, 128), word(chance)))


def draw_tuples(chance: random.Random) -> Any:
    """Draw a filter in the notation of tuples."""
    clauses: Any = [
        (chance.choice("cdvp"), chance.choice(OPERATORS), draw_literal(chance))[: chance.choice((3, 3, 3, 2))]
        for _ in range(chance.choice((0, 1, 2)))
    ]
    return chance.choice((clauses, [clauses], [clauses, clauses], tuple(clauses), [*clauses[:1], None]))


def conditions(chance: random.Random) -> list[Call]:
    """SQL text, JSON text, tuples and expressions."""
    valid = base(chance.randrange(COUNT))
    while valid.is_encrypted:
        valid = base(chance.randrange(COUNT))
    sql = change_text(chance.choice(SQL), chance, TOKENS)
    tree = change_text(chance.choice(TREES), chance, (*JSON_TOKENS, '"op"', '"column"', '"args"', '"value"'))
    tuples = draw_tuples(chance)
    name = chance.choice((*valid.names, word(chance)))
    literal = draw_literal(chance)
    path, type = change_text(chance.choice(PATHS), chance, TOKENS), chance.choice((*TYPES, word(chance)))

    def compare() -> Any:
        column = pqext.col(name)
        use = chance.choice((
            lambda: column > literal, lambda: column == literal, lambda: column.isin(literal),
            lambda: column.like(literal),
            lambda: column.between(literal, 1), lambda: column.cast(type) > 1, lambda: column.variant(path,
            type) > literal,
            lambda: column.intersects(literal), lambda: column.st_buffer(literal).st_area() > 1,
            lambda: column + literal > 1,
            lambda: column.dwithin(literal, 1), lambda: column.starts_with(literal),
            lambda: column.field(literal).is_null(),
        ))  # fmt: skip
        return use()

    every = [
        Call("SQL filter", lambda: pqext.scan(valid.data, filter=sql).count(), True),
        Call("SQL filter, table", lambda: pqext.read_table(valid.data, filter=chance.choice(SQL)), True),
        Call("from_sql", lambda: str(filters.from_sql(sql)), True),
        Call("from_json", lambda: filters.to_json(filters.from_json(tree)), True),
        Call("tuple filter", lambda: pqext.scan(valid.data, filter=tuples).count(), True, True),
        Call("expression", lambda: pqext.scan(valid.data, filter=compare()).to_table(), True, True),
        Call("columns", lambda: pqext.read_table(valid.data, [sql]), True),
        Call("computed columns", lambda: pqext.read_table(valid.data, {"n": sql, "m": literal}), True, True),
        Call("column path", lambda: pqext.read_table(valid.data, [pqext.col(word(chance))]), True),
        Call("select", lambda: pqext.scan(valid.data).select(literal).to_table(), True, True),
        Call("order_by", lambda: pqext.scan(valid.data).order_by(literal, descending=chance.choice(VALUES)).to_table(),
            True, True),
    ]  # fmt: skip
    return sample(chance, every, 4)


def options(chance: random.Random) -> list[Call]:
    """Options of the wrong type or of extreme values."""
    data = base(1).data
    write = {chance.choice(WRITE): draw_literal(chance) for _ in range(chance.choice((1, 1, 2)))}
    read = {chance.choice(READ): draw_literal(chance)}
    scan = {chance.choice(SCAN): draw_literal(chance)}
    limits = {chance.choice(tuple(pqext.Limits.__dataclass_fields__)): draw_literal(chance)}
    for values in (write, read):
        if values.get("threads") is not None:
            del values["threads"]  # starting thousands of threads is what the caller asked for
    good = variant.parse_json(['{"a": 1}'])
    value, other = draw_literal(chance), draw_literal(chance)
    every = [
        Call(f"write {write!r:.150}", lambda: pqext.write_table(TABLE, io.BytesIO(), **write), True, True),
        Call(f"open {read!r:.150}", lambda: pqext.open(data, **read).read(), True, True),
        Call(f"scan {scan!r:.150}", lambda: pqext.scan(data, **scan).to_table(), True, True),
        Call(f"limits {limits!r:.150}", lambda: pqext.read_table(data, limits=pqext.Limits(**limits)), True, True),
        Call(f"head {value!r:.50}", lambda: pqext.scan(data).head(value), True, True),
        Call(f"limit {value!r:.50}", lambda: pqext.scan(data).limit(value, other).to_table(), True, True),
        Call(f"batches {value!r:.50}", lambda: list(pqext.open(data).iter_batches(value)), True, True),
        Call(f"open {value!r:.50}", lambda: pqext.open(value), True, True, (OSError,)),
        Call(f"write to {value!r:.50}", lambda: pqext.write_table(value, io.BytesIO()), True, True),
        Call(f"get {value!r:.50}", lambda: variant.get(good, value, other), True, True),
        Call(f"shred {value!r:.50}", lambda: variant.shred(good, value, coerce=other), True, True),
        Call(f"parse_json {value!r:.50}", lambda: variant.parse_json(value, max_depth=other), True, True),
        Call(f"from_wkt {value!r:.50}", lambda: geo.from_wkt(value, crs=other), True, True),
        Call(f"area {value!r:.50}", lambda: geo.area(value, other), True, True),
        Call(f"intersects {value!r:.50}", lambda: geo.intersects(geo.from_wkt(["POINT (1 2)"]), value, other), True,
            True),
        Call(f"verify {value!r:.50}", lambda: pqext.verify(data, checks=value, limit=other), True, True),
        Call(f"col {value!r:.50}", lambda: pqext.read_table(data, [pqext.col(value)]), True, True),
        Call(f"inspect {value!r:.50}", lambda: pqext.inspect(data, columns=value, max_chunks=other), True, True),
    ]  # fmt: skip
    return sample(chance, every, 5)


URLS = ("file:///tmp/no/such.parquet", "file://host/x", "local://x", "memory://x", "http://127.0.0.1:1/x",
        "http://[::1",
        "http://", "https://:0/", "http://127.0.0.1:99999/x", "http://127.0.0.1:x/", "ftp://", "s3://",
        "zip://a::file:///tmp/x",
        "simplecache::memory://x", "data:;base64,UEFSMQ==", "data:;base64,?", "unknown://x", "://", "C:\\x",
        "~nobody/x",
        "/dev/null", "/proc/self", "/tmp/\0", "*.parquet", "[a", "/tmp/no/**/*.parquet", "a" * 5000, "blob::", "::",
        "reference://", "github://", "dir::x", "cached::", "tar://x::memory://y")  # fmt: skip
NETWORK = ("http", "https", "ftp", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "hdfs", "viewfs", "webhdfs",
           "sftp", "ssh",
           "smb", "github", "git", "hf", "dropbox", "oss", "oci", "dbfs", "dask", "jupyter", "lakefs", "gdrive",
           "libarchive", "root", "wandb", "box", "generic", "asynclocal")  # fmt: skip
"""Schemes that would send requests or look for credentials: their URLs are located with options, never opened."""


def locations(chance: random.Random) -> list[Call]:
    """Malformed paths, URLs and options of storage."""
    url = change_text(
        chance.choice(URLS), chance, (":", "/", "//", "::", "?", "#", "@", "%", "[", "]", "\0", "..", "é", " ", "*")
    )
    if re.match(r"/+[^/]*[*?[]", url):  # visits all files of the machine
        return []
    names = ("anonymous", "key", "region", "timeout", "default_headers", "client_options", word(chance)[:20])
    storage = {chance.choice(names): draw_literal(chance)} if chance.random() < 0.4 else None
    is_remote = any(scheme in url.lower() for scheme in (f"{name}{end}" for name in NETWORK for end in (":", "%3a")))
    if is_remote:
        scheme = url.lower().partition(":")[0]
        if scheme not in ("http", "https"):
            return []
        return [Call(f"locate {url!r:.100}", lambda: locate(url, None, storage), True, errors=(OSError,))]
    errors = (OSError, ImportError)
    every = [
        Call(f"open {url!r:.100}", lambda: pqext.open(url, storage_options=storage), True, errors=errors),
        Call(f"scan {url!r:.100}", lambda: pqext.scan([url, url], storage_options=storage).count(), True,
            errors=errors),
        Call(f"verify {url!r:.100}", lambda: pqext.verify(url, storage_options=storage), True, errors=errors),
        Call(f"read_json {url!r:.100}", lambda: list(variant.read_json(url)), True, errors=errors),
        Call(f"read_geojson {url!r:.100}", lambda: geo.read_geojson(url), True, errors=errors),
        Call(f"is_indexed {url!r:.100}", lambda: pqext.skipping.is_indexed(url, storage_options=storage), True,
            errors=errors),
    ]  # fmt: skip
    return sample(chance, every, 3)


def _csv(chance: random.Random) -> str:
    cells = (
        "1",
        "-1.5",
        "",
        "x",
        '"a,b"',
        '"a""b"',
        '"',
        "2024-01-01",
        "true",
        "null",
        "9" * 40,
        "01",
        "1,5",
        "é",
        "POINT (1 2)",
        "{}",
        "\0",
    )
    delimiter = chance.choice(",,,;\t|")
    width = chance.randrange(1, 4)
    rows = [
        delimiter.join(chance.choice(cells) for _ in range(width if chance.random() < 0.9 else width + 1))
        for _ in range(6)
    ]
    return chance.choice(("\n", "\r\n", "\r")).join([delimiter.join("abc"[:width]), *rows])


def conversions(chance: random.Random) -> list[Call]:
    """Files of CSV, JSON lines and GeoJSON for ``pqext convert``."""
    format = chance.choice(("csv", "json", "geojson"))
    if format == "csv":
        text = change_text(_csv(chance), chance, (",", '"', "\n", "\r", "\0", "\ufeff", "#", ";", "\t"))
    elif format == "json":
        text = "\n".join(json.dumps(draw_document(chance)) for _ in range(3))
        text = change_text(text, chance, JSON_TOKENS) if chance.random() < 0.7 else text
    else:
        text = json.dumps({"type": "FeatureCollection", "features": [draw_feature(chance) for _ in range(3)]})
        text = change_text(text, chance, JSON_TOKENS) if chance.random() < 0.7 else text
    data = text.encode("utf-8", "surrogatepass")
    if chance.random() < 0.3:
        data = change_bytes(data, chance)
    every = ([], [], ["--on-error", "skip"], ["--on-error", "null"], ["--geometry", "a,b"], ["--wkt", "a"], ["--json",
             "a"],
             ["--properties", "p"], ["--crs", word(chance)], ["--delimiter", word(chance)[:2]], ["--types",
             f"a={chance.choice(TYPES)}"],
             ["--encoding", chance.choice(("utf-8", "utf-16", "latin-1", "x"))], ["--sort", "a"], ["--bloom-filter",
             "a"],
             ["--null-values", word(chance)[:5]], ["--shredding", "infer"], ["--json-layout", "array"], ["--skip-rows",
             "2"],
             ["--compression", word(chance)[:9]], ["--no-header"], ["--geojson", "a"], ["--json-layout",
             "documents"])  # fmt: skip
    arguments = [*chance.choice(every), *chance.choice(every)]
    return [
        Call(f"convert {format} {arguments!r:.100}", lambda: _convert(data, format, arguments), True, errors=(OSError,))
    ]


def _convert(data: bytes, format: str, arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"in.{format}"
        path.write_bytes(data)
        arguments = ["convert", str(path), str(Path(folder) / "out.parquet"), "--input-format", format, *arguments]
        result = CliRunner().invoke(app, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit | click.exceptions.Exit):
            raise result.exception
        if result.exit_code == 0:
            pqext.read_table(str(Path(folder) / "out.parquet"))
