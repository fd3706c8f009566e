"""The help of every command: an example that it takes, each option explained, and what the exit status means."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pqext.cli import app


def commands(group: click.Group, prefix: str = "") -> dict[str, click.Command]:
    """The commands of a group and its subgroups, by all words of their names."""
    context, found = click.Context(group), {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found |= commands(command, f"{name} ") if isinstance(command, click.Group) else {prefix + name: command}
    return found


COMMANDS = commands(app)


@pytest.mark.parametrize("name", COMMANDS)
def test_example_in_the_help_is_accepted_by_the_command(name: str) -> None:
    shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "500"})
    assert shown.exit_code == 0
    assert "Exit status: 0" in shown.output
    example = re.search(r"^Example: (.*)$", COMMANDS[name].help or "", re.M)
    assert example is not None
    words = ["pqext", *name.split()]
    called = shlex.split(example[1])
    assert called[: len(words)] == words
    COMMANDS[name].make_context(name, called[len(words) :])  # raises for what it does not take
    assert example[1] in shown.output


@pytest.mark.parametrize("name", COMMANDS)
def test_option_values_have_names_instead_of_types(name: str) -> None:
    shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "500"}).output
    for internal in ("INTEGER", "RANGE", "FLOAT ", "TEXT ", "<=", "x>"):
        assert internal not in re.sub(r"'[^']*'|\"[^\"]*\"", "", shown)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_description(name: str) -> None:
    told = {one.name: getattr(one, "help", None) for one in COMMANDS[name].params}
    assert [parameter for parameter, text in told.items() if not text] == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["quer", "a.parquet"], "No such command 'quer'. Did you mean 'query'?"),
        (["explain", "a.parquet"], "No such command 'explain'; use 'pqext query --explain'\n"),
        (["query", "a.parquet", "--columns", "id"], "'--select'"),
        (["head", "a.parquet", "--filter", "id"], "'--where'"),
        (["count", "a.parquet", "--wher", "id"], "'--where'"),
        (["query", "a.parquet", "--limit", "x"], "'x' is not a valid integer"),
        (["query", "a.parquet", "--format", "xlsx"], "'xlsx' is not one of 'table', 'json'"),
        (["query"], "Missing argument 'SOURCE...'"),
    ],
)
def test_misspelled_command_suggests_the_nearest_name(arguments: list[str], told: str) -> None:
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 2
    assert told in found.output
    assert "Traceback" not in found.output


def test_shell_completion_lists_commands_and_options() -> None:
    for line, word, expected in (("pqext con", 1, "convert"), ("pqext convert --ord", 2, "--order")):
        environment = {**os.environ, "COMP_WORDS": line, "COMP_CWORD": str(word), "_PQEXT_COMPLETE": "bash_complete"}
        environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
        code = "import sys; sys.argv = ['pqext']; from pqext.cli import main; main()"
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [f"plain,{expected}"]


@pytest.mark.parametrize(("command", "option", "name"), [
    ("convert a b", "--variant", "--column"), ("convert a b", "--sep", "--delimiter"),
    ("convert a b", "--schema", "--shredding"), ("convert a b", "--null-words", "--null-values"),
    ("query a", "--filter", "--where"), ("query a", "--columns", "--select"), ("query a", "--rows", "--limit"),
    ("query a", "--out", "--output"), ("head a", "--limit", "--rows"),
])  # fmt: skip
def test_options_of_other_programs_suggest_the_option(command: str, option: str, name: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), option, "x"], env={"COLUMNS": "500"})
    assert shown.exit_code == 2
    assert f"No such option '{option}'; use '{name}'" in shown.output
