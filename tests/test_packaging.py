"""What a checkout must hold so that wheels, editable installs and type checkers find all of it."""

from __future__ import annotations

import ast
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pqext

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
KERNELS = sorted(path.relative_to(ROOT) for path in (ROOT / "pqext").rglob("*.pyx"))
SOURCES = sorted(
    path.relative_to(ROOT)
    for suffix in ("*.py", "*.pyx", "*.pxd", "*.pxi", "*.h")
    for path in (ROOT / "pqext").rglob(suffix)
    if "build" not in path.relative_to(ROOT).parts
)
MOST_LINES = 450
FEWEST_LINES = 40
PUBLIC = "a module that users import"
IN_LAYERS = "several folders use it, of which none may import another"
SHORT_MODULES = {
    "pqext/__main__.py": "`python -m pqext`",
    "pqext/encryption.py": PUBLIC,
    "pqext/extension.py": PUBLIC,
    "pqext/filters.py": PUBLIC,
    "pqext/core/base/batches.py": IN_LAYERS,
    "pqext/core/base/pickling.py": IN_LAYERS,
    "pqext/core/base/version.py": "it loads the metadata of packages, which is slow, on first use",
    "pqext/core/format/encodings/bit_packed.py": "each encoding has a module",
    "pqext/core/io/sources/pending_stores.py": "it chooses between two modules that do not import each other",
    "pqext/core/kernels/decode/hybrid_runs.pyx": "each kernel is a unit of compilation",
    "pqext/core/schema/types/file_reference.py": "each logical type with rules of its own has a module",
    "pqext/core/schema/types/geometries.py": IN_LAYERS,
    "pqext/spark/base/worker_process.py": IN_LAYERS,
    "pqext/tables/error_texts.py": IN_LAYERS,
    "pqext/variant/kernels/convert.pyx": "each kernel is a unit of compilation",
    "pqext/variant/kernels/zone.pyx": "each kernel is a unit of compilation",
}
"""Modules of fewer than ``FEWEST_LINES`` lines, and why none of them is part of its user or of its neighbour."""


def commands(document: str) -> list[str]:
    """The README's shell commands: the lines of its ``sh`` blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```", document, re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if line and not line.startswith("#")]


def test_every_kernel_is_typed() -> None:
    assert len(KERNELS) > 20
    assert [str(kernel) for kernel in KERNELS if not (ROOT / kernel.with_suffix(".pyi")).is_file()] == []


def test_no_kernel_disables_bounds_checks_for_a_whole_module() -> None:
    unchecked = re.compile(r"^\s*#\s*cython:.*boundscheck\s*=\s*False", re.M)
    assert [str(kernel) for kernel in KERNELS if unchecked.search((ROOT / kernel).read_text("utf-8"))] == []


def test_kernels_list_their_imported_names() -> None:
    every = re.compile(r"^\s*from\s+\S+\s+cimport\s+\*", re.M)
    assert [str(source) for source in SOURCES if every.search((ROOT / source).read_text("utf-8"))] == []


def test_source_files_stay_readable() -> None:
    lengths = {str(source): len((ROOT / source).read_text("utf-8").splitlines()) for source in SOURCES}
    assert {source: lines for source, lines in lengths.items() if lines > MOST_LINES} == {}


def test_short_modules_have_a_reason() -> None:
    modules = [source for source in SOURCES if source.suffix in (".py", ".pyx") and source.stem != "__init__"]
    lines = {source.as_posix(): len((ROOT / source).read_text("utf-8").splitlines()) for source in modules}
    assert {source for source, count in lines.items() if count < FEWEST_LINES} == set(SHORT_MODULES)


def test_docstrings_do_not_refer_to_a_previous_one() -> None:
    empty = re.compile(r'"""The same\b')
    assert [str(source) for source in SOURCES if empty.search((ROOT / source).read_text("utf-8"))] == []


def test_every_folder_of_code_is_a_package() -> None:
    bare = {str(source.parent) for source in SOURCES if not (ROOT / source.parent / "__init__.py").is_file()}
    assert bare == set()


def test_package_is_marked_as_typed() -> None:
    assert (ROOT / "pqext" / "py.typed").is_file()
    assert {"*.pxd", "*.pxi", "*.h", "*.pyi", "py.typed"} <= set(PROJECT["tool"]["setuptools"]["package-data"]["*"])


def test_editable_install_exposes_the_package_to_type_checkers() -> None:
    distribution = pytest.importorskip("setuptools").Distribution({"name": "pqext"})
    pytest.importorskip("Cython")
    setup = runpy.run_path(str(ROOT / "setup.py"))
    install = setup["NameFolder"](distribution)
    install.finalize_options()
    assert install.mode == "compat"
    assert '"editable_wheel": NameFolder' in (ROOT / "setup.py").read_text("utf-8")


def test_install_also_compiles_the_kernels_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setuptools = pytest.importorskip("setuptools")
    pytest.importorskip("Cython")
    setup = runpy.run_path(str(ROOT / "setup.py"))
    monkeypatch.setattr(setup["build"], "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    extension = setuptools.Extension("pqext.core.levels", ["pqext/core/levels.pyx"])
    command = setup["BuildKernels"](
        setuptools.Distribution({"name": "pqext", "packages": ["pqext.core"], "ext_modules": [extension]})
    )
    command.ensure_finalized()
    in_source = tmp_path / command.get_ext_filename("pqext.core.levels")
    stale = tmp_path / command.get_ext_filename("pqext.core.removed")
    in_source.parent.mkdir(parents=True)
    stale.touch()

    def build_extensions() -> None:
        built = Path(command.get_ext_fullpath("pqext.core.levels"))
        built.parent.mkdir(parents=True)
        built.write_bytes(b"compiled")

    monkeypatch.setattr(command, "build_extensions", build_extensions)
    assert command.inplace == 0  # as in `pip install .`
    command.run()
    assert in_source.read_bytes() == b"compiled"
    assert not stale.exists()


def test_checkout_without_compiled_kernels_is_an_error_with_remedy(tmp_path: Path) -> None:
    kernels = tmp_path / "pqext" / "core" / "kernels"
    kernels.mkdir(parents=True)
    for name in ("pqext", "pqext/core", "pqext/core/kernels"):
        shutil.copy(ROOT / name / "__init__.py", tmp_path / name)
    (kernels / "levels.pyx").touch()
    command = [sys.executable, "-c", "import sys; sys.modules['pqext'] = type(sys)('pqext'); "
               "sys.modules['pqext'].__path__ = ['pqext']; import pqext.core.kernels"]  # fmt: skip
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "ImportError" in ran.stderr
    assert re.search(r"lacks 1 compiled kernels \(levels.* Python in another folder.*pip install -e \.", ran.stderr)


def test_tests_are_not_a_package() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == [], "importlib mode and a bare `reference` rely on it"


# What gives another value in each process: a test named by it is another test to each of the workers of pytest-xdist.
CHANGING = re.compile(
    r"gzip\.compress\((?!.*mtime=)|time\.(time|monotonic|perf_counter)|datetime\.now|uuid\.uuid|os\.(urandom|getpid)"
)


def run_at_import(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that importing a module evaluates: decorators and defaults, but no body of a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from [*child.decorator_list, *child.args.defaults]
        elif isinstance(child, ast.expr):
            yield child
        else:
            yield from run_at_import(child)


def test_test_modules_import_equally_in_every_process() -> None:
    changing = [
        f"{path.name}:{call.lineno}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if CHANGING.search(source := path.read_text("utf-8"))
        for expression in run_at_import(ast.parse(source))
        for call in ast.walk(expression)
        if isinstance(call, ast.Call) and CHANGING.match(ast.unparse(call))
    ]
    assert changing == []


def test_ci_runs_the_commands_of_the_readme() -> None:
    lines = commands((ROOT / "README.md").read_text("utf-8"))
    readme = [line.partition("  #")[0].rstrip() for line in lines]
    assert readme == [
        "pip install -e .", "pip install -e '.[spark]' && pqext demo", "pip install -e '.[spark,test]' && pytest"
    ]
    tests = readme[-1].split(" && ")
    assert [line for line in (ROOT / ".ci" / "run").read_text("utf-8").splitlines() if line in tests] == tests


WORKFLOWS = {path.name: path.read_text("utf-8") for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))}


def test_workflow_actions_are_pinned_to_one_commit() -> None:
    used = {line for text in WORKFLOWS.values() for line in re.findall(r"uses: (.*)", text)}
    loose = {line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+|\$/.*", line)}
    assert loose == set()
    assert len({line.partition("@")[0] for line in used}) == len(used), "one action in two versions"


def test_workflows_have_no_default_permissions() -> None:
    lacking = {name for name, text in WORKFLOWS.items() if "\npermissions: {}\n" not in text}
    assert lacking == set()
    assert {name for name, text in WORKFLOWS.items() if "\nconcurrency:\n" not in text} == set()
    assert [name for name, text in WORKFLOWS.items() if "secrets." in text] == []


def test_wheel_workflow_watches_all_build_inputs() -> None:
    triggers = WORKFLOWS["wheels.yml"].partition("workflow_call")[0]
    watched = set(re.findall(r"^      - \"?([^\"\n]+)\"?$", triggers, re.M))
    sources = {f"pqext/**/*{source.suffix}" for source in SOURCES if source.suffix != ".py"}
    assert {"setup.py", "build_kernels.py", "pyproject.toml", "MANIFEST.in", ".ci/*", *sources} <= watched


def test_nightly_workflow_runs_the_search_of_the_tests_readme() -> None:
    guide = (ROOT / "tests" / "README.md").read_text("utf-8")
    for command in ("pytest --hypothesis-profile=thorough", "python tests/mutations/run.py --compiled"):
        assert command in WORKFLOWS["nightly.yml"]
        assert command in guide


def test_version_is_written_once() -> None:
    version = PROJECT["project"]["version"]
    literals = [str(source) for source in SOURCES if f'"{version}"' in (ROOT / source).read_text("utf-8")]
    assert literals == []
    assert pqext.__version__ == version
    shown = subprocess.run([sys.executable, "-m", "pqext", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == f"pqext {version}\n"
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_dev_extra_installs_the_tools_of_contributing() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    (own, *tools) = extras["dev"]
    included = own.removeprefix("pqext[").removesuffix("]").split(",")
    assert {"spark", "test", "docs"} <= set(included)
    names = {re.split(r"[\[<>=;]", requirement)[0] for extra in included for requirement in extras[extra]}
    assert {"ruff", "mypy", "pytest", "mkdocs-material", "pyspark"} <= names
    assert set(PROJECT["build-system"]["requires"]) <= set(tools)


def test_every_supported_python_is_built_and_named() -> None:
    metadata = PROJECT["project"]
    named = re.findall(r":: (3\.\d+)$", "\n".join(metadata["classifiers"]), re.M)
    built = [f"3.{tag}" for tag in re.findall(r"cp3(\d+)-", PROJECT["tool"]["cibuildwheel"]["build"])]
    assert named == built
    assert metadata["requires-python"] == f">={named[0]}"
    assert "Typing :: Typed" in metadata["classifiers"]


def test_changelog_has_a_short_section_for_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    releases = re.findall(r"^## (\S+)(?: \((\S+)\)| - (\d{4}-\d\d-\d\d))$", changelog, re.M)
    assert len(releases) == len(re.findall(r"^## ", changelog, re.M))
    assert releases[0][0] == PROJECT["project"]["version"]
    assert [version for version, state, _ in releases[1:] if state] == []  # only the next release has no date
    for section in re.split(r"^## .*$", changelog, flags=re.M)[1:]:
        assert len(section.strip().splitlines()) <= 60
        headings = re.findall(r"^### (.*)$", section, re.M)
        assert headings
        assert len(set(headings)) == len(headings)
