"""SQL dialect of filters: how sqlglot splits the text into tokens and parses it.

Both kinds of quotes around names are accepted, and numbers can have Spark's suffixes: ``1L`` and ``1.5BD``. A function
is only a name with arguments, so sqlglot cannot rewrite one function as another.
"""

from __future__ import annotations

from typing import Any, ClassVar

import sqlglot
from sqlglot import TokenType

from pqext.dataset.notations import sql_literals as literals
from pqext.dataset.notations.sql_literals import restore_interval


class Filter(sqlglot.Dialect):
    """SQL dialect that accepts both kinds of quotes around names, and treats functions as names with arguments."""

    class Tokenizer(sqlglot.Tokenizer):
        """Tokenizer of SQL filters."""

        IDENTIFIERS: ClassVar[list[Any]] = ['"', "`"]
        HEX_STRINGS: ClassVar[list[Any]] = [("x'", "'"), ("X'", "'")]
        NUMERIC_LITERALS: ClassVar[dict[str, str]] = {
            "L": "BIGINT", "S": "SMALLINT", "Y": "TINYINT", "D": "DOUBLE", "F": "FLOAT", "BD": "DECIMAL",
        }  # fmt: skip

    class Parser(sqlglot.Parser):
        """Parser of SQL filters."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser for name, parser in sqlglot.Parser.FUNCTION_PARSERS.items() if name in ("CAST", "TRY_CAST")
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        PRIMARY_PARSERS: ClassVar[dict[Any, Any]] = {**sqlglot.Parser.PRIMARY_PARSERS, TokenType.NULL: literals.null}

        def _parse_interval(self, *arguments: Any, **keywords: Any) -> Any:
            start = self._index
            interval = super()._parse_interval(*arguments, **keywords)
            return restore_interval(interval, self._tokens[start : self._index])

        def _warn_unsupported(self) -> None:
            self.raise_error("a statement")  # sqlglot would log a warning and continue
