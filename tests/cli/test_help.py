"""The help of every command: an example that it takes, each option explained, and what the exit status means."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from pqext.cli import app

PROGRAM = typer.main.get_command(app)
COMMANDS = dict(PROGRAM.commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_in_the_help_is_one_that_the_command_takes(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "500"})
    assert shown.exit_code == 0
    assert "Exit status: 0" in shown.output
    example = re.search(r"Example: \[bold\](.*)\[/bold\]", COMMANDS[name].help)
    assert example is not None
    program, called, *arguments = shlex.split(example[1])
    assert (program, called) == ("pqext", name)
    COMMANDS[name].make_context(name, arguments)  # raises for what it does not take
    assert example[1] in shown.output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    silent = [one.opts for one in COMMANDS[name].params if not getattr(one, "help", None)]
    assert silent == []


def test_shells_complete_commands_and_options() -> None:
    for line, word, expected in (("pqext con", 1, "convert"), ("pqext convert --ord", 2, "--order")):
        environment = {**os.environ, "COMP_WORDS": line, "COMP_CWORD": str(word), "_PQEXT_COMPLETE": "complete_bash"}
        environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
        code = "import sys; sys.argv = ['pqext']; from pqext.cli import main; main()"
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [expected]
