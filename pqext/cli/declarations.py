"""Commands of click made from functions, whose parameters declare arguments and options.

A parameter is declared as ``Annotated[type, Option("--name", help="...")]`` or with :class:`Argument`. Types are text,
numbers, sizes, paths, enumerations of text, flags, lists of these (an option that may be repeated), and any of them or
None.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, NewType, get_args, get_origin, get_type_hints

import click

Size = NewType("Size", int)
"""A number of bytes, which may have a unit on the command line: ``64MB``, ``2GiB``."""
OPTIONS, READING, STORES = "Options", "Reading Parquet", "Stores"


@dataclass(frozen=True, slots=True)
class Declared:
    """What arguments and options have in common."""

    help: str = ""
    metavar: str | None = None
    show_default: bool | str = True


@dataclass(frozen=True, slots=True)
class Argument(Declared):
    """An argument, in its place on the command line.

    ``is_file``: it names files that are read at any offset, so standard input, ``-``, is stored in a file.
    """

    is_file: bool = False


@dataclass(frozen=True, slots=True, init=False)
class Option(Declared):
    """An option by its names; without one by that of the parameter, which makes it required where it has no default.

    ``panel`` is its part of the help.
    """

    names: tuple[str, ...] = ()
    min: float | None = None
    max: float | None = None
    panel: str = OPTIONS

    def __init__(
        self, *names: str, help: str, metavar: str | None = None, show_default: bool | str = True,
        min: float | None = None, max: float | None = None, panel: str = OPTIONS,
    ) -> None:
        values = {
            "help": help, "metavar": metavar, "show_default": show_default, "names": names, "min": min, "max": max,
            "panel": panel,
        }  # fmt: skip
        for name, value in values.items():
            object.__setattr__(self, name, value)


class _Argument(click.Argument):
    about = ""


class _Option(click.Option):
    panel = OPTIONS


_OF_OTHERS = {
    "--columns": "--select", "--column": "--select", "--filter": "--where", "--filters": "--where", "--out": "--output",
    "--head": "--limit", "--rows": "--limit", "--max-rows": "--limit", "--schema": "--shredding",
    "--sep": "--delimiter", "--separator": "--delimiter", "--delim": "--delimiter", "--nulls": "--null-words",
    "--null-values": "--null-words", "--null-value": "--null-words",
}  # fmt: skip
"""Options of other programs, and what they are called here."""


class _Sections(click.Command):
    """A command whose help has its arguments, and its options by panels."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            ours = _OF_OTHERS.get(error.option_name, "--rows" if error.option_name == "--limit" else None)
            if ours is not None and any(ours in one.opts for one in self.params):
                raise click.UsageError(f"there is no option '{error.option_name}': it is '{ours}' here", ctx) from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(one.make_metavar(ctx), one.about) for one in self.params if isinstance(one, _Argument)]
        _section(formatter, "Arguments", rows)
        panels: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):
            record = None if isinstance(one, _Argument) else one.get_help_record(ctx)
            if record is not None:
                panels.setdefault(one.panel if isinstance(one, _Option) else OPTIONS, []).append(record)
        for name in sorted(panels, key=lambda one: (one == STORES, one == READING, one == OPTIONS)):  # these last
            _section(formatter, name, panels[name])


def _section(formatter: click.HelpFormatter, name: str, records: Sequence[tuple[str, str]]) -> None:
    if records:
        with formatter.section(name):
            formatter.write_dl(records)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the function of a command is, its part of the help, and what stands at the end of its own help."""

    module: str
    function: str
    panel: str
    epilog: str


class Program(click.Group):
    """The commands of a table, whose modules are imported when they are asked for."""

    def __init__(self, places: Mapping[str, Place], **settings: Any) -> None:
        super().__init__(**settings)
        self.places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(dict.fromkeys(name.partition(" ")[0] for name in self.places))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self.places.get(cmd_name)
        if place is None:
            return self._group(cmd_name)
        function = getattr(import_module(place.module), place.function)
        return command(cmd_name, function, epilog=place.epilog, context_settings=dict(self.context_settings))

    def _group(self, name: str) -> Program | None:
        """The commands of two words that begin with ``name``."""
        words = [two.partition(" ") for two in self.places]
        inner = {second: self.places[f"{name} {second}"] for first, _, second in words if first == name and second}
        if not inner:
            return None
        panels = {place.panel for place in inner.values()}
        settings = {"context_settings": dict(self.context_settings), "no_args_is_help": True}
        return Program(inner, name=name, help=f"{', '.join(sorted(panels))}.", **settings)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from pqext.core.base.suggestions import did_you_mean

        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}{did_you_mean(args[0], self.places)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, place in self.places.items():
            found = self.get_command(ctx, name)
            about = "" if found is None else found.get_short_help_str(200)
            panels.setdefault(place.panel, []).append((name, about))
        for panel, rows in panels.items():
            _section(formatter, panel, rows)


def command(name: str, function: Callable[..., None], **settings: Any) -> click.Command:
    """The command that calls ``function`` with what its parameters declare; its docstring is the help."""
    made: dict[str, tuple[click.Parameter, Callable[[Any], Any]]] = {}
    groups: dict[str, tuple[Any, list[str]]] = {}  # parameters whose type is a dataclass of options
    for name_, hint, default in _parameters_of(function):
        if is_dataclass(hint):
            members = list(_parameters_of(hint))
            groups[name_] = hint, [member for member, _, _ in members]
            made.update((member, _parameter(member, kind, value)) for member, kind, value in members)
        else:
            made[name_] = _parameter(name_, hint, default)

    def call(**given: Any) -> None:
        values = {one: made[one][1](value) for one, value in given.items()}
        for parameter, (kind, members) in groups.items():
            values[parameter] = kind(**{member: values.pop(member) for member in members})
        function(**values)

    params = [parameter for parameter, _ in made.values()]
    text = inspect.cleandoc(function.__doc__ or "")
    text = re.sub(r"^Example: ", "\b\nExample: ", text, flags=re.M)  # \b: as it stands, however long
    return _Sections(name, callback=call, params=params, help=text, **settings)


def _parameters_of(function: Any) -> Iterator[tuple[str, Any, Any]]:
    """The names, types and defaults of parameters of a function or of fields of a dataclass."""
    hints = get_type_hints(function, include_extras=True)
    for one in inspect.signature(function).parameters.values():
        yield one.name, hints[one.name], one.default


def _parameter(name: str, hint: Any, default: Any) -> tuple[click.Parameter, Callable[[Any], Any]]:
    """A parameter of click, and what makes the function's value of the one that click gives."""
    kind, told = get_args(hint)
    inner = [one for one in get_args(kind) if one is not NoneType] if NoneType in get_args(kind) else [kind]
    is_list = get_origin(inner[0]) is list
    base = get_args(inner[0])[0] if is_list else inner[0]
    required = default is inspect.Parameter.empty
    value = None if required else default
    if isinstance(told, Argument):
        argument = _Argument(
            [name], type=_type(base, None, None), metavar=told.metavar, nargs=-1 if is_list else 1, required=required,
            **({} if required or is_list else {"default": value}),
        )
        argument.about = told.help
        read = _reader(base, is_list, value)
        return argument, (lambda given: _spooled(read(given))) if told.is_file else read
    flags = told.names or ("--" + name.replace("_", "-"),)
    metavar = told.metavar or ("SIZE" if base is Size else "N" if base in (int, float) else None)
    more: dict[str, Any] = {} if required else {"default": value.value if isinstance(value, Enum) else value}
    option = _Option(
        [*flags, name], type=_type(base, told.min, told.max), help=told.help, metavar=metavar,
        show_default=told.show_default, multiple=is_list, is_flag=base is bool, required=required,
        **more,
    )
    option.panel = told.panel
    return option, _reader(base, is_list, value)


def _type(base: Any, low: float | None, high: float | None) -> Any:
    if isinstance(base, type) and issubclass(base, Enum):
        return click.Choice([one.value for one in base])
    if base is Size:
        return _SizeType(low)
    if base in (int, float) and (low is not None or high is not None):
        return click.IntRange(low, high) if base is int else click.FloatRange(low, high)  # type: ignore[arg-type]
    return click.Path(path_type=Path) if base is Path else base


class _SizeType(click.ParamType):  # type: ignore[type-arg]
    name = "size"

    def __init__(self, least: float | None) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from pqext.core.base.text import parse_bytes

        try:
            size = parse_bytes(value) if isinstance(value, str) else int(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if self.least is not None and size < self.least:
            self.fail(f"{value} is less than {self.least} bytes", param, ctx)
        return size


def _spooled(value: Any) -> Any:
    """A path or paths, with a file in the place of standard input."""
    from pqext.cli.standard_input import STREAM, stored

    if isinstance(value, list):
        return [stored() if one == STREAM else one for one in value]
    return stored() if value == STREAM else value


def _reader(base: Any, is_list: bool, default: Any) -> Callable[[Any], Any]:
    def one(value: Any) -> Any:
        return base(value) if isinstance(base, type) and issubclass(base, Enum) else value

    def read(value: Any) -> Any:
        if is_list:
            return [one(part) for part in value] or default
        return None if value is None else one(value)

    return read
