"""Pages in headless Chromium, where it is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, which is not installed")
_LOOK = """<script>
document.querySelector("iframe").onload = event => {
  const window = event.target.contentWindow, document = window.document, style = e => window.getComputedStyle(e);
  document.querySelectorAll("details").forEach(d => d.open = true);
  top.document.title = JSON.stringify(%s);
};
</script>"""


def render(
    folder: Path, page: str, look: str, width: int = 360, dark: bool = False, log: list[str] | None = None
) -> Any:
    """The value of ``look``, JavaScript, in a frame of ``width`` pixels that shows ``page`` with all its details.

    ``log`` receives what the page writes to the console: errors, and loads that its policy rejects.
    """
    frame = f'<iframe srcdoc="{escape(page)}" style="width:{width}px;height:800px;border:0"></iframe>'
    (folder / "frame.html").write_text(f"<title></title>{frame}{_LOOK % look}", "utf-8")
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    shown = subprocess.run(
        [CHROMIUM or "", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
         "--disable-background-networking", "--no-first-run", "--enable-logging=stderr", *scheme,
         "--dump-dom", str(folder / "frame.html")],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    if log is not None:
        log += re.findall(r"CONSOLE[^\n]*", shown.stderr)
    title = re.search("<title>(.*?)</title>", shown.stdout)
    assert title is not None
    return json.loads(unescape(title[1]))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours by WCAG 2.2."""
    lights = []
    for colour in (one, other):
        digits = colour.lstrip("#")
        digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
        parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)
