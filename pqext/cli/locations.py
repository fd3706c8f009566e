"""Sources and destinations as text, with the options of the stores that their URLs name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pqext.cli.declarations import STORES, Option

if TYPE_CHECKING:
    from pqext.core.io.sources.store import Location

Place: TypeAlias = "str | Location"
"""A local path, or a place in a store; as text it is the path or URL that messages show."""

Storage = Annotated[
    list[str] | None,
    Option(
        "--storage-option", metavar="KEY=VALUE", show_default=False, panel=STORES,
        help="A setting of the store that a URL names, such as region=eu-central-1 or endpoint_url=http://host:9000; "
        "may be repeated. Other users see what stands on a command line: give keys and tokens by the environment.",
    ),
]
Anonymous = Annotated[
    bool,
    Option(
        "--anonymous", panel=STORES, help="Read public buckets without credentials: anonymous=true for short."
    ),
]


def placed(given: Sequence[str], storage: Sequence[str] | None, anonymous: bool) -> list[Place]:
    """``given`` with every URL as the place in a store that the options reach.

    Raises ``ValueError`` for options that are no ``KEY=VALUE``, that have no URL to apply to, or that the store does
    not know. No message holds a value.
    """
    from pqext.core.base.local_paths import scheme_of
    from pqext.core.io.sources.locations import locate

    options = _options(storage or (), anonymous)
    schemes = [scheme_of(text) for text in given]
    if options and not any(scheme not in (None, "file") for scheme in schemes):
        named = "--anonymous" if anonymous and not storage else "--storage-option"
        raise ValueError(f"{named} is for URLs, s3://bucket/key for example")
    return [
        text if not options or scheme in (None, "file") else locate(text, storage_options=options)
        for text, scheme in zip(given, schemes, strict=True)
    ]


def _options(storage: Sequence[str], anonymous: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"anonymous": True} if anonymous else {}
    for text in storage:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise ValueError("--storage-option takes KEY=VALUE, as in region=eu-central-1")
        if key in options:
            raise ValueError(f"--storage-option: {key!r} is given twice")
        options[key] = value.lower() == "true" if value.lower() in ("true", "false") else value
    return options
