"""Parse the shredding of a column, as in the writer's option, Spark options and the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from pqext.core.base.suggestions import did_you_mean, excerpt
from pqext.variant.shredding.infer import infer_with_options
from pqext.variant.shredding.infer_types import Inference
from pqext.variant.shredding.schema import ShreddingSchema, Untyped, shredding_schema, type_names
from pqext.variant.shredding.shredder import Coerce, check_coerce
from pqext.variant.types import VariantLike

_INFERENCE = tuple(field.name for field in fields(Inference) if field.name != "coerce")
OPTIONS = ("schema", "coerce", *_INFERENCE)
"""Keys of a mapping of shredding options."""


@dataclass(frozen=True, slots=True)
class Shredding:
    """A schema, or options to infer one, and the coercion of values."""

    schema: ShreddingSchema | None
    """Schema; None if it must be inferred."""
    inference: Inference
    coerce: Coerce

    def schema_for(self, sample: VariantLike | None) -> ShreddingSchema:
        """Return the schema, or infer it from ``sample`` if it is None; untyped if there is no sample."""
        if self.schema is not None:
            return self.schema
        return infer_with_options(sample, self.inference) if sample is not None else Untyped()

    def options(self) -> dict[str, Any]:
        """Return the JSON-compatible mapping that :func:`shredding` parses as an equal object."""
        if self.schema is not None:
            return {"schema": str(self.schema), "coerce": self.coerce}
        return {"schema": "infer", **asdict(self.inference)}


def shredding(spec: Any, default: Coerce = "equivalent") -> Shredding:
    """Parse the shredding of a column.

    ``spec`` is a schema or options. A schema is a value that :func:`pqext.variant.shredding_schema` accepts, or
    ``"infer"``. Options are a mapping, or JSON text that starts with a brace, with the keys ``schema`` (by default
    ``"infer"``), ``coerce`` as in :func:`pqext.variant.shred`, and, if the schema is inferred, arguments of
    :func:`pqext.variant.infer_schema`. A result of this function is also accepted. ``default`` is the default coercion.
    Raises ``ValueError`` or ``TypeError`` for other values.
    """
    if isinstance(spec, Shredding):
        return spec
    if isinstance(spec, str) and spec.lstrip().startswith("{"):
        try:
            spec = json.loads(spec)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"shredding options {excerpt(spec)!r} are not JSON: {error}") from None
    if not isinstance(spec, Mapping):
        spec = {"schema": spec}
    for name in spec:
        if name not in OPTIONS:
            meant = did_you_mean(name, OPTIONS) if isinstance(name, str) else ""
            there = f"{meant or '; a schema is DDL text, as in a INT'}; the options are {', '.join(OPTIONS)}"
            raise ValueError(f"unknown shredding option {excerpt(repr(name))}{there}")
    coerce = check_coerce(spec.get("coerce", default))
    schema = spec.get("schema", "infer")
    arguments = {name: spec[name] for name in _INFERENCE if name in spec}
    if is_inferred(schema):
        return Shredding(None, Inference(**arguments, coerce=coerce), coerce)
    if arguments:
        raise ValueError(f"shredding option {next(iter(arguments))!r} applies to inferred schemas only")
    try:
        return Shredding(shredding_schema(schema), Inference(coerce=coerce), coerce)
    except ValueError:
        meant = did_you_mean(schema.strip(), ["infer", *type_names()]) if isinstance(schema, str) else ""
        if "'infer'" in meant:
            raise ValueError(f"invalid shredding schema {schema!r}{meant}") from None
        raise


def is_inferred(schema: Any) -> bool:
    """Return whether ``schema`` is the string ``"infer"``."""
    return isinstance(schema, str) and schema.strip().lower() == "infer"
