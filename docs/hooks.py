"""Pages of the site that come from other files: the ledger, the changelog and the reference of the command line."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
LEDGER = {f"ledger/{page.name}": page for page in sorted((ROOT / "specs").glob("*.md"))}
LEDGER["ledger/mutations.md"] = ROOT / "tests" / "mutations" / "README.md"
COPIED = {**LEDGER, "about/changelog.md": ROOT / "CHANGELOG.md", "about/security.md": ROOT / "SECURITY.md"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages of the ledger in the navigation, where it names their folder."""
    uris = sorted(address(uri) for uri in LEDGER)
    uris.sort(key=lambda uri: not uri.endswith("index.md"))
    for entry in config.nav or []:
        for pages in entry.values():
            for page in pages if isinstance(pages, list) else []:
                if isinstance(page, dict) and "ledger/" in page.values():
                    page.update({title: list(uris) for title in page})
    return config


def address(uri: str) -> str:
    """The README of a folder is its index."""
    return uri.replace("README.md", "index.md")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are copied or generated."""
    for uri, source in COPIED.items():
        text = source.read_text("utf-8").replace("../tests/mutations/README.md", "mutations.md")
        files.append(File.generated(config, address(uri), content=re.sub(r"\]\((?:\.\./)+specs/", "](", text)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the options of the commands and the plots of the benchmarks where a page asks for them."""
    for name, made in (
        ("commands", commands), ("benchmarks", benchmarks), ("overview", overview), ("phases", phases),
    ):
        if f"{{{{ {name} }}}}" in markdown:
            markdown = markdown.replace(f"{{{{ {name} }}}}", made())
    return markdown


def benchmarks() -> str:
    """Each recorded benchmark with its plots, the command, the machine and the versions."""
    sections = []
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.json")):
        result = json.loads(path.read_text("utf-8"))
        plots = sorted((ROOT / "docs" / "images" / "benchmarks").glob(f"{path.stem}*.svg"))
        drawn = "\n".join(f'<div class="scrolls">{plot.read_text("utf-8")}</div>\n' for plot in plots)
        versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
        told = f"`{result['command']}`, in {result['unit']}: {versions}; {result['machine']}."
        script = ROOT / "benchmarks" / f"{path.stem}.py"
        about = (ast.get_docstring(ast.parse(script.read_text("utf-8"))) or "").partition("\n")[0]
        sections.append(f"## {result['title']}\n\n{about}\n\n{drawn}\n{told}")
    return "\n\n".join(sections)


def overview() -> str:
    """The chart of all benchmarks."""
    plot = ROOT / "docs" / "images" / "benchmarks" / "overview.svg"
    return f'<div class="scrolls">{plot.read_text("utf-8")}</div>'


def phases() -> str:
    """The recorded time of each phase of typical queries."""
    return (ROOT / "benchmarks" / "results" / "where_time_goes.md").read_text("utf-8")


def commands() -> str:
    """Each command of pqext with its arguments and options, from the program itself."""
    import click

    from pqext.cli import app

    return "\n\n".join(describe(name, command) for name, command in sorted(walk(click.Context(app)).items()))


def walk(context: Any) -> dict[str, Any]:
    """Return the commands of a group and its subgroups by name."""
    import click

    commands = {}
    for name in context.command.list_commands(context):
        command = context.command.get_command(context, name)
        if isinstance(command, click.Group):
            inner = walk(click.Context(command, info_name=name, parent=context))
            commands |= {f"{name} {subcommand}": function for subcommand, function in inner.items()}
        else:
            commands[name] = command
    return commands


def describe(name: str, command: Any) -> str:
    """One command: its usage, what it does, and a table of what it takes."""
    from click.testing import CliRunner

    from pqext.cli import app

    shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    usage = re.sub(r".*?Usage: \S+ ([^\n]*?) *\n.*", r"pqext \1", shown, flags=re.S)
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    rows = [
        f"| {', '.join(f'`{flag}`' for flag in [*one.opts, *one.secondary_opts])} | {cell(one.help)}{default(one)} |"
        for one in options
    ]
    table = "\n".join(["| option | meaning |", "|---|---|", *rows]) if rows else ""
    return f"## pqext {name}\n\n```text\n{usage}\n```\n\n{plain(command.help)}\n\n{table}"


def plain(text: str | None) -> str:
    """Return help text without the marks that preserve its line breaks, with examples as code."""
    shown = (text or "").replace("\b\n", "").strip()
    return re.sub(r"^Example: (.*)$", r"```sh\n\1\n```", shown, flags=re.M)


def cell(text: str | None) -> str:
    return " ".join(plain(text).split()).replace("|", "\\|")


def default(option: Any) -> str:
    """Return the default value, if it is informative."""
    value = option.default
    if value in (None, False, True, (), []) or callable(value):
        return ""
    shown = getattr(value, "value", value)
    return f" Default: `{shown}`."
