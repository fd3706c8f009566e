"""Patterns of Python code: found within a definition and replaced there, whatever the formatting."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Definition:
    """The statement ``block[index]``, which defines ``name``: dotted, within its module."""

    name: str
    block: list[ast.stmt]
    index: int


@dataclass(frozen=True)
class Match:
    """Code that matches a pattern: an item or slice of a list, or an attribute of a node."""

    container: Any
    key: Any

    def replace(self, code: Any) -> None:
        """Put ``code`` in place of the match; a block that would be empty gets ``pass``."""
        self.container[self.key] = code
        if not self.container:
            self.container.append(ast.Pass())


def definitions(module: ast.Module) -> Iterator[Definition]:
    """Functions, classes, and names that a module or class assigns."""
    yield from _definitions_of(module.body, "", local=False)


def _definitions_of(block: list[ast.stmt], prefix: str, *, local: bool) -> Iterator[Definition]:
    for index, statement in enumerate(block):
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            yield Definition(prefix + statement.name, block, index)
            function = isinstance(statement, FUNCTIONS)
            yield from _definitions_of(statement.body, f"{prefix}{statement.name}.", local=function)
            continue
        if not local:
            for name in _assigned_names(statement):
                yield Definition(prefix + name, block, index)
        for inner in _blocks(statement):
            yield from _definitions_of(inner, prefix, local=local)


def _assigned_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    else:
        return []
    return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]


def _blocks(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of ``statement``, without those of nested statements."""
    for _, value in ast.iter_fields(statement):
        if isinstance(value, list) and value:
            if isinstance(value[0], ast.stmt):
                yield value
            elif isinstance(value[0], (ast.ExceptHandler, ast.match_case)):
                for item in value:
                    yield from _blocks(item)


def parse(find: str, replace: str) -> tuple[Any, Any]:
    """Two expressions, or two lists of statements where either text is not an expression.

    Raises:
        SyntaxError: If either text is not Python.
    """
    try:
        return _expression(find), _expression(replace)
    except SyntaxError:
        return ast.parse(find).body, ast.parse(replace).body


def _expression(text: str) -> ast.expr:
    if not text.strip():
        raise SyntaxError("no expression")
    return ast.parse(f"({text}\n)", mode="eval").body


def matches(definition: Definition, pattern: ast.expr | list[ast.stmt]) -> Iterator[Match]:
    """Occurrences of ``pattern``, as :func:`parse` returns it, in the statement of ``definition``."""
    statement = definition.block[definition.index]
    if isinstance(pattern, ast.expr):
        yield from _matching_expressions(statement, pattern)
    elif pattern:
        if _is_same([statement], pattern):
            yield Match(definition.block, slice(definition.index, definition.index + 1))
        yield from _matching_statements(statement, pattern)


def _matching_expressions(root: ast.AST, pattern: ast.expr) -> Iterator[Match]:
    for parent in ast.walk(root):
        for field, value in ast.iter_fields(parent):
            container, keys = (value, range(len(value))) if isinstance(value, list) else (vars(parent), [field])
            for key in keys:
                if _is_same(container[key], pattern):
                    yield Match(container, key)


def _matching_statements(root: ast.AST, pattern: list[ast.stmt]) -> Iterator[Match]:
    for parent in ast.walk(root):
        for value in vars(parent).values():
            if isinstance(value, list):
                for start in range(len(value) - len(pattern) + 1):
                    if all(_is_same(value[start + n], pattern[n]) for n in range(len(pattern))):
                        yield Match(value, slice(start, start + len(pattern)))


def _is_same(one: Any, other: Any) -> bool:
    """Whether two nodes, lists of nodes, or values of fields are the same code."""
    if type(one) is not type(other):
        return False
    if isinstance(one, ast.AST):
        return all(_is_same(getattr(one, name, None), getattr(other, name, None)) for name in one._fields)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other)
