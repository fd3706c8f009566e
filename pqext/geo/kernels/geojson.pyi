from typing import Any

from pqext.geo.kernels.wkb import WkbColumn

def to_wkb(column: WkbColumn) -> tuple[Any, Any, Any]: ...
