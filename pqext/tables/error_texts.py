"""Format errors of table libraries, catalogs and stores on one line, without credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pqext.core.io.sources.store_errors import collect_secrets, redact_error

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m|↳")
_INPUT = re.compile(r"input_value=(?:(?!, input_type=).)*?://(?:(?!, input_type=).)*")
"""Value in a message of pydantic. Pydantic omits the middle of long values, so a password may be incomplete."""
_USER = re.compile(r"(?<=['\"])[^\s'\"@/:]*:(?!//)[^\s'\"]*@")
"""User and password at the start of a quoted URL without its scheme, as Arrow shows a path of S3."""
_CREDENTIAL = re.compile(r"secret|token|password|credential|key|signature|authorization|user", re.IGNORECASE)
"""Names of catalog properties whose values are credentials."""


def error_reason(error: object, options: Any = None) -> str:
    """Return the message of ``error`` without user names and queries in URLs and without values of ``options``."""
    text = " ".join(_ESCAPES.sub(" ", str(error)).split()) or type(error).__name__
    return redact_error(_USER.sub("", _INPUT.sub("input_value=***", text)), collect_secrets(options))


def credentials(properties: Mapping[str, Any]) -> list[Any]:
    """Return the values of catalog ``properties`` that are credentials."""
    return [value for name, value in properties.items() if _CREDENTIAL.search(name)]
