"""Filters as the text of an SQL condition.

    mag >= 5 and name like '%Fiji%'
    event:$.user.uid::bigint in (1, 2) and day >= date '2024-01-01'
    st_intersects(geom, st_geomfromtext('POLYGON ((0 0, 9 0, 9 9, 0 0))')) or not (price * count > 100)

sqlglot parses the text, and its syntax tree is mapped to an expression node by node; nothing is executed. Any other
syntax is rejected with its position in the text. Identifiers are case-sensitive, like column names; ``"a b"`` and ```a
b``` quote them. ``event:a.b`` and ``event:$.a.b`` are the value at a path of a VARIANT column. The value is cast by a
following ``::type``, otherwise to the type of the literal that it is compared with: ``double`` for all numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import sqlglot
from sqlglot import ParseError, Token, TokenError, TokenType, exp

from pqext.core.base.suggestions import excerpt
from pqext.core.base.text import escape_text, with_noun
from pqext.core.format.predicate import Operator
from pqext.dataset.expressions import (
    Arithmetic,
    ArithmeticOperator,
    Cast,
    Column,
    Comparison,
    Expression,
    GeometryValue,
    IsIn,
    SpatialValue,
    Value,
    VariantField,
    all_of,
    any_of,
    as_value,
    relation,
)
from pqext.dataset.expressions.patterns import ESCAPE
from pqext.dataset.expressions.type_inference import infer_common_type, infer_type, suggest_type
from pqext.dataset.notations import sql_literals as literals
from pqext.dataset.notations.sql_dialect import (
    FUNCTIONS,
    GEOMETRIES,
    LENGTH,
    NAN,
    SPATIAL,
    TEXT,
    VARIANT,
    Filter,
    Shape,
    fold_constants,
    null_safe_equality,
    parse_wkt,
    spatial_value,
)
from pqext.dataset.notations.sql_literals import convert_interval
from pqext.dataset.notations.sql_mistakes import (
    NULL_COMPARED,
    expected_syntax,
    unclosed_token,
    unknown_function_message,
    unsupported_node,
    unsupported_syntax,
)
from pqext.dataset.notations.sql_paths import PathError, insert_paths, mask_paths, path_spans
from pqext.geo.functions.table import FUNCTIONS as MEASURES
from pqext.variant.access.path import as_path, format_path

MAX_LENGTH = 100_000
"""Maximum length of a filter in characters."""
MAX_NESTED = 50
"""Maximum nesting of parentheses and brackets."""
Node: TypeAlias = Any
"""A node of sqlglot's syntax tree; its class name differs between versions."""


@dataclass(frozen=True, slots=True)
class _Path:
    """A path into a VARIANT column, before the type of the value at the path is inferred."""

    column: Column
    path: str


class _SyntaxError(ValueError):
    """Syntax error with a message that shows the position of the error in the text."""


def from_sql(text: str) -> Expression:
    """Parse the text of an SQL condition.

    Raises:
        ValueError: If the text is not a condition or uses unsupported syntax; the message shows the position.

    >>> str(from_sql("mag >= 5 and name like '%Fiji%'"))
    "(mag >= 5 and name like '%Fiji%')"
    """
    return _Reader(text).parse_condition()


def value_from_sql(text: str) -> Value:
    """Parse SQL text into a value: a column or an expression of columns.

    >>> str(value_from_sql("price * 2"))
    'price * 2'
    """
    return _Reader(text).parse_value()


def parse_tree(text: str) -> Node:
    """Parse SQL text into sqlglot's syntax tree. Raises ``ValueError`` for syntax errors."""
    return _Reader(text)._read(lambda node: node)


class _Reader:
    """Parser of one SQL text, which maps its syntax tree to an expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._deepest: Node | None = None
        self._parser: Any = None

    def parse_condition(self) -> Expression:
        return cast(Expression, self._read(self._map_condition))

    def parse_value(self) -> Value:
        return cast(Value, self._read(self._map_root_value))

    def _read(self, convert: Callable[[Node], Any]) -> Any:
        if len(self.text) > MAX_LENGTH:
            raise ValueError(f"the text has more than {MAX_LENGTH:,} characters")
        try:
            return convert(self._parse())
        except _SyntaxError as error:
            raise ValueError(str(error)) from None
        except RecursionError:
            raise ValueError(str(self._error_at(self._last_position(), "the text is nested too deeply"))) from None

    def _last_position(self) -> int:
        """Return the start of the last token that the parser read."""
        if self._deepest is not None:
            return literals.start_of(self._deepest) or 0
        token = getattr(self._parser, "_curr", None)
        return 0 if token is None else int(token.start)

    def _parse(self) -> Node:
        dialect = Filter()
        try:
            tokens = self._tokenize(dialect)
            self._parser = dialect.parser(error_level=sqlglot.ErrorLevel.IMMEDIATE)
            result = self._parser.parse(tokens, self.text)
        except TokenError:
            raise self._error_at(*unclosed_token(self.text)) from None
        except ParseError as error:
            raise self._error_at(*expected_syntax(self.text, error, self._parser)) from None
        if len(result) != 1 or result[0] is None:
            raise self._error_at(0, "a filter must be one condition, as in mag >= 5")
        return result[0]

    def _tokenize(self, dialect: sqlglot.Dialect) -> list[Token]:
        """Split the text into tokens. Each VARIANT path becomes a string token in brackets."""
        try:
            spans = path_spans(self.text)
        except PathError as error:
            raise self._error_at(error.offset, str(error)) from None
        tokens = dialect.tokenize(mask_paths(self.text, spans))
        depth = 0
        for token in tokens:
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            if depth > MAX_NESTED:
                raise self._error_at(token.start, f"parentheses nest more than {MAX_NESTED} deep")
        return insert_paths(tokens, spans)

    def _map_condition(self, node: Node) -> Expression:
        result = self._map_expression(node)
        if isinstance(result, Column | VariantField | Cast | SpatialValue):
            return Comparison(result, "==", True)  # booleans
        if isinstance(result, _Path):
            return Comparison(self._add_type(node, result, True), "==", True)
        if not isinstance(result, Expression):
            raise self._syntax_error(node, "expected a condition: add a comparison, as in mag >= 5")
        return result

    def _map_root_value(self, node: Node) -> Value:
        """Convert the root node to a value. A VARIANT path without a type becomes a value of type VARIANT."""
        result = self._map_expression(node)
        return result.column.variant(result.path, "variant") if isinstance(result, _Path) else self._map_value(node)

    def _map_value(self, node: Node) -> Value:
        match = self._map_expression(node)
        if isinstance(match, _Path):
            raise self._syntax_error(node, f"write the type of {match.path}, as in {match.column}:{match.path}::double")
        if not isinstance(match, Value):
            raise self._syntax_error(node, "expected a column or an expression of columns")
        return match

    def _map_expression(self, node: Node) -> Any:
        """Map a node to a condition, a value, a path without a type, a geometry, a literal, or None for null."""
        self._deepest = node
        try:
            self._check(node)
            result = self._map_node(node)
            return ~result if node.args.get("negate") else result
        except _SyntaxError:
            raise
        except (TypeError, ValueError, ArithmeticError) as error:
            raise self._syntax_error(node, str(error)) from None

    def _check(self, node: Node) -> None:
        """Reject a node with attributes that the mapping does not support."""
        if any(value for name, value in node.args.items() if name not in _KNOWN):
            raise self._error_at(*unsupported_syntax(node))

    def _map_node(self, node: Node) -> Any:
        match node:
            case exp.Paren():
                return self._map_expression(node.this)
            case exp.And() | exp.Or():
                parts = [self._map_condition(part) for part in node.flatten()]
                return all_of(parts) if isinstance(node, exp.And) else any_of(parts)
            case exp.Not():
                return ~self._map_condition(node.this)
            case exp.Literal():
                return node.this if node.is_string else literals.parse_number(node.this)
            case exp.HexString():
                return literals.parse_hexadecimal(str(node.this))
            case exp.Boolean():
                return bool(node.this)
            case exp.Null():
                return None
            case exp.Interval():
                return convert_interval(node)
            case exp.Column() | exp.Dot() | exp.Identifier():
                return self._map_column(node)
            case exp.Bracket():
                return self._map_bracket(node)
            case exp.Cast():
                return self._map_cast(node)
            case exp.Neg():
                result = self._map_operand(node.this)
                return -result
            case exp.Is():
                return self._map_is(node)
            case exp.In():
                return self._map_in(node)
            case exp.Between():
                low, high = node.args["low"], node.args["high"]
                is_above = self._map_comparison(">=", node, node.this, low)
                return is_above & self._map_comparison("<=", node, node.this, high)
            case exp.Escape(this=exp.Like() | exp.ILike() as inner):
                self._check(inner)
                result = self._map_like(inner, self._read_text(node.expression))
                return ~result if inner.args.get("negate") else result
            case exp.Like() | exp.ILike():
                return self._map_like(node, ESCAPE)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                result = self._map_null_safe_equality(node)
                return result if isinstance(node, exp.NullSafeEQ) else ~result
            case exp.Anonymous():
                return self._map_call(node)
        if type(node) in literals.COMPARE:
            return self._map_comparison(literals.COMPARE[type(node)], node, node.this, node.expression)
        if type(node) in literals.ARITHMETIC:
            return self._map_arithmetic(literals.ARITHMETIC[type(node)], node)
        raise self._error_at(*unsupported_node(node, self._parser))

    def _map_column(self, node: Node) -> Column:
        parts = (
            [node]
            if isinstance(node, exp.Identifier)
            else (node.parts if isinstance(node, exp.Column | exp.Dot) else [])
        )
        if not parts or not all(isinstance(part, exp.Identifier) for part in parts):
            raise self._syntax_error(node, "expected a column")
        start, path = literals.start_of(node), tuple(str(part.this) for part in parts)
        quoted = len(parts) == 1 and (self.text.startswith('"', start) or literals.is_right_operand(node))
        hint = f"; quote text with single quotes: '{escape_text(path[0])}'" if quoted else ""
        place = None if start is None else hint + literals.excerpt(self.text, start)
        is_quoted = any(part.args.get("quoted") for part in parts)
        return Column(path, place, 0 if is_quoted else len(path))

    def _map_bracket(self, node: exp.Bracket) -> Any:
        """Map an indexed node: a struct field, or a path of a VARIANT."""
        column = self._map_expression(node.this)
        (inner,) = node.expressions if len(node.expressions) == 1 else (None,)
        if not isinstance(column, Column) or not isinstance(inner, exp.Literal) or not inner.is_string:
            raise self._syntax_error(node, "brackets must contain a field name, or a path as in event['$.a.b']")
        text = str(inner.this)
        return _Path(column, format_path(as_path(text))) if text.startswith("$") else column.field(text)

    def _map_cast(self, node: exp.Cast) -> Any:
        result = self._map_expression(node.this)
        if isinstance(result, _Path):
            return result.column.variant(result.path, literals.type_of_cast(node.to))
        if isinstance(result, Value):
            return result.cast(literals.type_of_cast(node.to))
        if result is None or isinstance(result, Expression | Shape):
            raise self._syntax_error(node, "only columns and literals can be cast, not conditions or null")
        return literals.cast_literal(result, node.to)

    def _map_operand(self, node: Node) -> Any:
        """Map a node to a value or a literal."""
        result = self._map_expression(node)
        if result is None:
            raise self._syntax_error(node, NULL_COMPARED)
        if isinstance(result, Expression | Shape):
            raise self._syntax_error(node, "expected a column or a literal")
        return result

    def _map_comparison(self, operator: Operator, node: Node, left: Node, right: Node) -> Expression:
        sides = self._map_operand(left), self._map_operand(right)
        item, other = (
            self._add_type(node, side, beside) if isinstance(side, _Path) else side
            for side, beside in zip(sides, reversed(sides), strict=True)
        )
        if isinstance(item, Value):
            return relation(item, operator, other) if isinstance(other, Value) else item._compare(operator, other)
        if isinstance(other, Value):
            return other._compare(literals.SWAPPED[operator], item)
        raise self._syntax_error(node, "a condition must compare a column, not two literals")

    def _map_null_safe_equality(self, node: Node) -> Expression:
        for side, other in ((node.this, node.expression), (node.expression, node.this)):
            if isinstance(side, exp.Null):
                return self._map_value(other).is_null()
        return null_safe_equality(self._map_comparison("==", node, node.this, node.expression))

    def _add_type(self, node: Node, path: _Path, other_operand: Any) -> VariantField:
        """Map a VARIANT path to a value with the type of the literal with which the path is compared."""
        is_literal = not isinstance(other_operand, Value | _Path)
        type = infer_type(other_operand) if is_literal else None
        if type is None:
            hint = (other_operand.place or "").partition("\n")[0] if isinstance(other_operand, Column) else ""
            written = suggest_type(other_operand if is_literal else None)
            typed = f"{path.column}:{path.path}::{written}{hint}"
            raise self._syntax_error(node, f"write the type of {path.path}, as in {typed}")
        return path.column.variant(path.path, type)

    def _map_is(self, node: exp.Is) -> Expression:
        match node.expression:
            case exp.Null():
                result = self._map_expression(node.this)
                if isinstance(result, _Path):
                    return result.column.variant(result.path, "variant").is_null()
                return self._map_value(node.this).is_null()
            case exp.Boolean():
                value = (
                    self._add_type(node, result, True)
                    if isinstance(result := self._map_expression(node.this), _Path)
                    else (self._map_value(node.this))
                )
                return value.is_not_null() & Comparison(value, "==", bool(node.expression.this))
        raise self._syntax_error(node, "expected null, not null, true or false after is")

    def _map_in(self, node: exp.In) -> Expression:
        if not node.expressions or node.args.get("query") or node.args.get("unnest"):
            raise self._syntax_error(node, "in requires a list of literals, as in kind in ('a', 'b')")
        values = [self._map_expression(expression) for expression in node.expressions]
        for element, value in zip(node.expressions, values, strict=True):
            if isinstance(value, Expression | Shape):
                raise self._syntax_error(element, "in requires a list of literals")
            if isinstance(value, Value | _Path):
                raise self._syntax_error(element, "in requires literals, not columns; quote text with single quotes")
        result = self._map_operand(node.this)
        if isinstance(result, _Path):
            literals_listed = [value for value in values if value is not None]
            is_decided = infer_common_type(literals_listed) is not None
            beside = literals_listed if is_decided else [item for item in literals_listed if infer_type(item) is None]
            result = self._add_type(node, result, next(iter(beside), ""))
        if not isinstance(result, Value):
            raise self._syntax_error(node, "in compares a column with a list; expected a column before in")
        return IsIn(result, tuple(values))

    def _map_like(self, node: Node, escape: str) -> Expression:
        result = self._map_expression(node.this)
        value = self._add_type(node, result, "") if isinstance(result, _Path) else self._map_value(node.this)
        pattern = self._read_text(node.expression)
        return value.ilike(pattern, escape) if isinstance(node, exp.ILike) else value.like(pattern, escape)

    def _read_text(self, node: Node) -> str:
        if not isinstance(node, exp.Literal) or not node.is_string:
            raise self._syntax_error(node, "expected text in quotes")
        return str(node.this)

    def _map_arithmetic(self, operator: ArithmeticOperator, node: Node) -> Any:
        sides = [self._map_operand(side) for side in (node.this, node.expression)]
        if any(isinstance(item := side, _Path) for side in sides):
            raise self._syntax_error(node, f"write the type of {item.path}, as in {item.column}:{item.path}::double")
        if not any(isinstance(side, Value) for side in sides):
            return fold_constants(operator, *sides)
        return Arithmetic(operator, (as_value(sides[0]), as_value(sides[1])))

    def _map_call(self, node: exp.Anonymous) -> Any:
        name, arguments = str(node.this).lower(), list(node.expressions)
        if name in ("date", "timestamp", "timestamptz") and len(arguments) == 1:
            return literals.cast_literal(self._read_text(arguments[0]), exp.DataType.build(name))
        if name in GEOMETRIES:
            return Shape(GEOMETRIES[name](*[self._map_operand(argument) for argument in arguments]))
        if name in SPATIAL:
            return self._map_spatial(node, name, arguments)
        if name in MEASURES:
            return spatial_value(name, [self._map_expression(argument) for argument in arguments])
        if name in TEXT and len(arguments) == 2:
            result = self._map_expression(arguments[0])
            value = self._add_type(node, result, "") if isinstance(result, _Path) else self._map_value(arguments[0])
            return getattr(value, TEXT[name])(self._read_text(arguments[1]))
        if name in LENGTH and len(arguments) == 1:
            return self._map_value(arguments[0]).list_length()
        if name in VARIANT and len(arguments) == 3:
            return self._map_column(arguments[0]).variant(*map(self._read_text, arguments[1:]))
        if name in NAN and len(arguments) == 1:
            return self._map_value(arguments[0]).is_nan()
        if name in FUNCTIONS:
            raise self._syntax_error(node, f"{name} does not accept {with_noun(len(arguments), 'argument')}")
        raise self._syntax_error(node, unknown_function_message(name))

    def _map_spatial(self, node: exp.Anonymous, name: str, arguments: list[Node]) -> Expression:
        if len(arguments) != 2 + (name == "st_dwithin"):
            raise self._syntax_error(node, f"{name} does not accept {with_noun(len(arguments), 'argument')}")
        sides = [self._map_expression(argument) for argument in arguments[:2]]
        operation, swapped = SPATIAL[name]
        if isinstance(sides[1], GeometryValue):
            operation, sides = swapped, sides[::-1]
        column, shape = sides
        if not isinstance(column, GeometryValue) or not isinstance(shape, Shape | str):
            expected = f"{name} requires a column and a geometry, as in {name}(geom, 'POINT (1 2)')"
            raise self._syntax_error(node, expected)
        geometry = shape.geometry if isinstance(shape, Shape) else parse_wkt(shape)
        distance = [float(self._map_operand(argument)) for argument in arguments[2:]]
        return cast(Expression, getattr(column, operation)(geometry, *distance))

    def _syntax_error(self, node: Node, reason: str) -> _SyntaxError:
        return self._error_at(literals.start_of(node) or 0, reason)

    def _error_at(self, offset: int, reason: str) -> _SyntaxError:
        return _SyntaxError(f"at character {offset + 1}: {excerpt(reason)}{literals.excerpt(self.text, offset)}")


_KNOWN = {
    "this", "expression", "expressions", "negate", "low", "high", "to", "quoted", "is_string", "table", "db", "catalog",
    "safe", "typed", "nested", "_type", "unit", "fraction_in_string",
}  # fmt: skip
"""Attributes of sqlglot's nodes that are mapped or have no effect; a node with any other attribute is rejected."""
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
