"""Click commands with panels in their help, and a group that imports its commands on first use."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import click

OPTIONS, READING, STORES = "Options", "Reading Parquet", "Stores"
EXIT_CODES = "Exit status: 0 success; 1 invalid input, file error or system error; 2 usage error; 130 interrupted."
_MISTAKEN_OPTIONS = {
    "--columns": "--select", "--filter": "--where", "--limit": "--rows", "--null-words": "--null-values",
    "--out": "--output", "--rows": "--limit", "--schema": "--shredding", "--sep": "--delimiter",
    "--variant": "--column",
}
"""Options of other programs, and their names in pqext."""
F = TypeVar("F", bound=Callable[..., Any])


class Option(click.Option):
    """Option whose help appears under the heading ``panel``."""

    def __init__(self, *args: Any, panel: str = OPTIONS, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.panel = panel

    def get_help_extra(self, ctx: click.Context) -> Any:
        extra = super().get_help_extra(ctx)
        if isinstance(self.type, click.IntRange | click.FloatRange):
            low, high = self.type.min, self.type.max
            extra["range"] = f"at least {low}" if high is None else f"{low} to {high:,}"
        return extra


class Command(click.Command):
    """Command whose help groups options by panel and lists exit codes. Errors suggest the correct option."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        settings.setdefault("epilog", EXIT_CODES)
        super().__init__(*args, **settings)
        # \b preserves the line breaks of the paragraph that follows
        self.help = re.sub(r"^Example: ", "\b\nExample: ", inspect.cleandoc(self.help or ""), flags=re.M)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = _MISTAKEN_OPTIONS.get(error.option_name)
            if error.option_name in ("-o", "--out", "--output") and any(item.name == "dest" for item in self.params):
                text = f"No such option '{error.option_name}'; write OUT without an option."
                raise click.UsageError(text, ctx) from None
            if name is not None and any(name in parameter.opts for parameter in self.params):
                raise click.UsageError(f"No such option '{error.option_name}'; use '{name}'.", ctx) from None
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. An error records the command, so that its message suggests only options of the command."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            vars(error).setdefault("command", self)
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = None if isinstance(parameter, click.Argument) else parameter.get_help_record(ctx)
            if record is not None:
                panels.setdefault(parameter.panel if isinstance(parameter, Option) else OPTIONS, []).append(record)
        common = (OPTIONS, READING, STORES)
        for panel in [*(name for name in panels if name not in common), *(name for name in common if name in panels)]:
            _write_section(formatter, panel, panels[panel])


class LazyCommand(NamedTuple):
    """Location of a command before its import: its module, its name in the module, and its help panel."""

    panel: str
    module: str
    attribute: str


class LazyGroup(click.Group):
    """Command group that imports the module of a command on first use of the command."""

    def __init__(
        self, *args: Any, lazy: Mapping[str, LazyCommand], hints: Mapping[str, str] | None = None, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.lazy = lazy
        self.hints = hints or {}
        """Commands to use instead of commands that do not exist."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.lazy.get(cmd_name)
        return None if entry is None else getattr(import_module(entry.module), entry.attribute)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.lazy and not args[0].startswith("-"):
            hint = self.hints.get(args[0])
            message = None if hint is None else f"No such command {args[0]!r}; use '{hint}'"
            raise click.NoSuchCommand(args[0], message, self.lazy if hint is None else None, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.lazy.items():
            command = self.get_command(ctx, name)
            panels.setdefault(entry.panel, []).append((name, command.get_short_help_str(200) if command else ""))
        for panel, rows in panels.items():
            _write_section(formatter, panel, rows)


def _write_section(formatter: click.HelpFormatter, name: str, rows: Sequence[tuple[str, str]]) -> None:
    with formatter.section(name):
        formatter.write_dl(rows)


command = partial(click.command, cls=Command)
argument = click.argument
option = partial(click.option, cls=Option)
flag = partial(click.option, cls=Option, is_flag=True)


def option_group(name: str, factory: Callable[..., Any], *options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return a decorator that adds ``options`` to a command and passes their values as a single argument.

    The argument is called ``name``, and its value is built by calling ``factory`` with the values of the options.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(**values: Any) -> Any:
            values[name] = factory(**{member: values.pop(member) for member in members})
            return function(**values)

        members: list[str] = []
        decorated: Any = call
        for add in reversed(options):
            decorated = add(decorated)
            members.append(decorated.__click_params__[-1].name)
        return decorated  # type: ignore[no-any-return]

    return decorate


class Size(click.ParamType):  # type: ignore[type-arg]
    """Parameter type for a number of bytes, optionally with a unit: ``64MB``, ``2GiB``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from pqext.core.base.text import parse_bytes

        try:
            size = parse_bytes(value) if isinstance(value, str) else int(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if size < 1:
            self.fail(f"{value} is less than 1 byte", param, ctx)
        return size
