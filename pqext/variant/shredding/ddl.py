"""Parser of shredding schemas in DDL: Spark's type names, with an optional colon after a field name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from pqext.core.base.suggestions import excerpt

MAX_DEPTH = 100
MAX_ARGUMENTS = 2
"""Maximum number of arguments after a type name: DECIMAL has two."""

_SPACE = re.compile(r"(?:\s++|--[^\n]*+|/\*.*?\*/)*+", re.DOTALL)
"""Whitespace and SQL comments."""
_TOKEN = re.compile(
    r"(?:(?P<word>[^\W\d]\w*|[0-9]+)|`(?P<quoted>(?:[^`]++|``)*+)`|'(?P<text>[^']*)'|(?P<mark>[<>(),:]))"
)


@dataclass(frozen=True, slots=True)
class DdlType:
    """Parsed type: ``name`` in upper case, ``fields`` of a STRUCT, ``element`` of an ARRAY or MAP, ``key`` of a MAP.

    ``word`` is an argument that is a word, as in GEOMETRY(ANY). ``required`` means that the field is NOT NULL.
    """

    name: str
    position: int
    arguments: tuple[int, ...] = ()
    fields: tuple[tuple[str, DdlType], ...] = ()
    element: DdlType | None = None
    key: DdlType | None = None
    word: str | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


def parse_ddl(
    text: str, subject: str = "shredding schema", *, allow_maps: bool = False, word_types: Collection[str] = ()
) -> DdlType:
    """Parse one type, or a list of fields as a STRUCT. ``subject`` is the name of the text in errors.

    ``NOT NULL`` after a field is recorded, but ignored for variants, because any of their fields may be missing.
    ``COMMENT 'text'`` is ignored. ``word_types`` lists types with a word argument. MAP types are accepted if
    ``allow_maps`` is True. Raises ``ValueError`` with the position.
    """
    parser = _Parser(text, subject, allow_maps, word_types)
    if parser.at_field_list():
        parsed = DdlType("STRUCT", 0, fields=parser.parse_fields(None))
    else:
        parsed = parser.parse_type(0)
    parser.end()
    return parsed


def ddl_error(text: str, position: int, reason: str, subject: str = "shredding schema") -> ValueError:
    """Return an error at a position of the DDL ``text``, with an excerpt around it."""
    return ValueError(f"{subject} {excerpt(text, position)!r}, position {position}: {reason}")


class _Parser:
    def __init__(self, text: str, subject: str, allow_maps: bool, word_types: Collection[str]) -> None:
        self.text = text
        self.subject = subject
        self.maps = allow_maps
        self.words = word_types
        self.tokens = self._tokens(text)
        self.next = next(self.tokens)
        self.following = next(self.tokens, self.next)

    def _tokens(self, text: str) -> Iterator[_Token]:
        at = 0
        while (at := _match_end(_SPACE, text, at)) < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.error(at, f"unexpected {text[at]!r}")
            kind = match.lastgroup or ""
            yield _Token(kind, match[kind], match.start(kind))
            at = match.end()
        yield _Token("end", "", len(text))

    def error(self, position: int, reason: str) -> ValueError:
        return ddl_error(self.text, position, reason, self.subject)

    def advance(self) -> _Token:
        token = self.next
        self.next, self.following = self.following, next(self.tokens, self.following)
        return token

    def skip(self, text: str) -> bool:
        """Consume the next token if it is the punctuation mark or unquoted keyword ``text``.

        Returns whether the token was consumed. Keywords are case-insensitive; ``text`` is in upper case.
        """
        token = self.next
        if token.kind in ("mark", "word") and token.text.upper() == text:
            self.advance()
            return True
        return False

    def expect(self, mark: str) -> None:
        token = self.next
        if not self.skip(mark):
            raise self.error(token.position, f"expected {mark}, found {_describe_token(token)}")

    def end(self) -> None:
        if self.next.kind != "end":
            raise self.error(self.next.position, f"unexpected {_describe_token(self.next)}")

    def at_field_list(self) -> bool:
        """Return whether the next tokens start a list of fields instead of a type."""
        if self.next.kind == "quoted":
            return True
        return self.following.kind != "end" and self.following.text not in ("<", "(")

    def parse_fields(self, closing: str | None, depth: int = 0) -> tuple[tuple[str, DdlType], ...]:
        """Parse a list of fields up to ``closing``, or up to the end of the text if it is None."""
        fields = []
        while True:
            name = self.advance()
            if name.kind not in ("word", "quoted"):
                raise self.error(name.position, f"expected a field name, found {_describe_token(name)}")
            self.skip(":")
            kind = self.parse_type(depth + 1)
            fields.append((name.text.replace("``", "`"), replace(kind, required=self.parse_attributes())))
            if not self.skip(","):
                break
        if closing is not None:
            self.expect(closing)
        return tuple(fields)

    def parse_attributes(self) -> bool:
        """Parse the attributes after the type of a field. Returns whether the field is NOT NULL."""
        required = self.skip("NOT")
        if required:
            self.expect("NULL")
        if self.skip("COMMENT"):
            token = self.advance()
            if token.kind != "text":
                raise self.error(token.position, "expected the text of the comment in single quotes")
        return required

    def parse_type(self, depth: int) -> DdlType:
        token = self.advance()
        if depth > MAX_DEPTH:
            raise self.error(token.position, f"the type is nested more than {MAX_DEPTH} levels deep")
        name = token.text.upper()
        if token.kind != "word" or name[0].isdecimal():
            example = " (write fields like 'mag DECIMAL(9,2), place STRING')" if not self.text.strip() else ""
            raise self.error(token.position, f"expected a type, found {_describe_token(token)}{example}")
        if name == "MAP" and self.maps:
            self.expect("<")
            key = self.parse_type(depth + 1)
            self.expect(",")
            item = self.parse_type(depth + 1)
            self.expect(">")
            return DdlType(name, token.position, element=item, key=key)
        if name == "MAP":
            raise self.error(token.position, "a variant has no maps; use STRUCT for an object")
        if name == "STRUCT":
            self.expect("<")
            return DdlType(name, token.position, fields=self.parse_fields(">", depth))
        if name == "ARRAY":
            self.expect("<")
            element = self.parse_type(depth + 1)
            self.expect(">")
            return DdlType(name, token.position, element=element)
        if name == "LIST" and self.next.text == "<":
            raise self.error(token.position, "a list is an ARRAY, like ARRAY<INT>")
        if name in self.words and self.next.text == "(" and self.following.text.isidentifier():
            self.advance()
            word = self.advance().text
            self.expect(")")
            return DdlType(name, token.position, word=word)
        return DdlType(name, token.position, self.parse_arguments())

    def parse_arguments(self) -> tuple[int, ...]:
        arguments: list[int] = []
        if not self.skip("("):
            return ()
        while True:
            token = self.advance()
            if not (token.kind == "word" and token.text.isascii() and token.text.isdigit() and len(token.text) < 10):
                raise self.error(token.position, f"expected a number, found {_describe_token(token)}")
            arguments.append(int(token.text))
            if len(arguments) == MAX_ARGUMENTS or not self.skip(","):
                break
        self.expect(")")
        return tuple(arguments)


def _match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return position if match is None else match.end()


def _describe_token(token: _Token) -> str:
    return repr("the end" if token.kind == "end" else excerpt(token.text, limit=60))
