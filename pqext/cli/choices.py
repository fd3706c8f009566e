"""Words that options choose among."""

from __future__ import annotations

from enum import StrEnum


class OnError(StrEnum):
    """What becomes of a line, a text or a row that cannot be read."""

    stop = "stop"
    null = "null"
    skip = "skip"


class Numbers(StrEnum):
    """What JSON numbers with a fraction become."""

    decimal = "decimal"
    double = "double"


class DuplicateKeys(StrEnum):
    """What a key that an object holds twice does."""

    error = "error"
    first = "first"
    last = "last"


class Form(StrEnum):
    """How a file of JSON holds its documents."""

    auto = "auto"
    lines = "lines"
    documents = "documents"
    array = "array"


class Edges(StrEnum):
    """How a geometry's vertices are joined."""

    planar = "planar"
    spherical = "spherical"
    vincenty = "vincenty"
    thomas = "thomas"
    andoyer = "andoyer"
    karney = "karney"


class Order(StrEnum):
    """The curve along which rows are ordered."""

    hilbert = "hilbert"
    zorder = "zorder"


class CheckRange(StrEnum):
    """What becomes of coordinates that are no longitude and latitude."""

    refuse = "refuse"
    clamp = "clamp"
    keep = "keep"


class Profile(StrEnum):
    """The reader that must understand the file."""

    spark = "spark"


class FooterForm(StrEnum):
    """The form of a footer."""

    thrift = "thrift"
    thrift_index = "thrift+index"
    thrift_flatbuffers = "thrift+flatbuffers"
    flatbuffers = "flatbuffers"
