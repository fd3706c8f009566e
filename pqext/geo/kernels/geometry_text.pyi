from typing import Any

from pqext.geo.kernels.wkb import WkbColumn

def to_text(column: WkbColumn, json: bool, decimals: int = -1) -> tuple[Any, Any]: ...
