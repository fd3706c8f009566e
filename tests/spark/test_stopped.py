"""A reader that Spark stops early ends without a traceback; other errors are shown."""

from __future__ import annotations

import subprocess
import sys

STEPS = """
import traceback
from pqext.spark.base.stopped_readers import end_quietly

end_quietly()
end_quietly()
for error in (BrokenPipeError("closed"), ValueError("shown once")):
    try:
        raise error
    except Exception:
        traceback.print_exc()
"""


def test_only_closed_pipes_are_not_shown() -> None:
    shown = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=True).stderr
    assert "BrokenPipe" not in shown
    assert shown.count("ValueError: shown once") == 1
