"""Script that zooms and pans a map with buttons, keys, mouse and touch, and updates its axes."""

from __future__ import annotations

import hashlib
from base64 import b64encode

from pqext.report.markup import HEAD, Markup, join, tag

SCRIPT = """{
const svg = document.querySelector("svg.map"), view = svg.viewBox.baseVal, W = view.width, H = view.height;
const [left, top, scale, turn] = svg.dataset.frame.split(" ").map(Number), pointers = new Map();
const grid = svg.querySelector(".graticule"), clamp = (v, low, high) => Math.max(low, Math.min(high, v));
const axes = () => {
  const unit = view.width / svg.clientWidth, font = 12 * unit, least = 70 * unit / scale;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = (turn ? [1, 2, 3, 5, 10] : [1, 2, 5, 10]).map(m => m * power).find(s => s >= least);
  const digits = clamp(-Math.floor(Math.log10(step * 1.0001)), 0, 12);
  const format = v => (v || 0).toLocaleString("en", {maximumFractionDigits: digits});
  let lines = "", labels = "";
  const label = (x, y, text) => labels += `<text x="${x}" y="${y}">${text}</text>`;
  for (let k = Math.ceil((left + view.x / scale) / step); k * step <= left + (view.x + view.width) / scale; k++) {
    const v = k * step, x = (v - left) * scale, text = format(turn && Math.abs(v) > 180 ? v - 360 * Math.sign(v) : v);
    lines += `M${x} ${view.y}v${view.height}`;
    if (x > view.x + 4 * font && x + font * (0.65 * text.length + 0.5) < view.x + view.width)
      label(x + 2 * unit, view.y + view.height - 4 * unit, text);
  }
  for (let k = Math.ceil((top - (view.y + view.height) / scale) / step); k * step <= top - view.y / scale; k++) {
    const y = (top - k * step) * scale;
    lines += `M${view.x} ${y}h${view.width}`;
    if (y > view.y + 1.5 * font && y < view.y + view.height - 2.5 * font)
      label(view.x + 3 * unit, y - 2 * unit, format(k * step));
  }
  grid.style.fontSize = font + "px";
  grid.innerHTML = `<path d="${lines}"/>${labels}`;
};
const move = (x, y, width) => {
  [view.width, view.height] = [width, width * H / W];
  [view.x, view.y] = [clamp(x, 0, W - width), clamp(y, 0, H - view.height)];
  svg.classList.toggle("zoomed", width < W);
  axes();
};
const zoom = (factor, x = view.x + view.width / 2, y = view.y + view.height / 2) => {
  const width = clamp(view.width / factor, W / 200, W), ratio = width / view.width;
  move(x - (x - view.x) * ratio, y - (y - view.y) * ratio, width);
};
const pan = (x, y) => move(view.x + x * view.width, view.y + y * view.height, view.width);
const keys = {
  "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), "0": () => move(0, 0, W),
  ArrowLeft: () => pan(-0.15, 0), ArrowRight: () => pan(0.15, 0), ArrowUp: () => pan(0, -0.15),
  ArrowDown: () => pan(0, 0.15),
};
const place = (x, y) => {
  const box = svg.getBoundingClientRect(), unit = view.width / box.width;
  return [view.x + (x - box.left) * unit, view.y + (y - box.top) * unit];
};
const middle = () => {
  const all = [...pointers.values()], mean = of => all.reduce((sum, p) => sum + of(p), 0) / all.length;
  const x = mean(p => p.clientX), y = mean(p => p.clientY);
  return [x, y, mean(p => Math.hypot(p.clientX - x, p.clientY - y))];
};
svg.onkeydown = event => {
  if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
};
svg.onpointerdown = event => pointers.set(event.pointerId, event);
window.onpointerup = window.onpointercancel = event => pointers.delete(event.pointerId);
window.onpointermove = event => {
  if (!pointers.has(event.pointerId)) return;
  const [x, y, spread] = middle();
  pointers.set(event.pointerId, event);
  const [newX, newY, newSpread] = middle();
  if (spread && newSpread) zoom(newSpread / spread, ...place(x, y));
  if (view.width < W) pan((x - newX) / svg.clientWidth, (y - newY) / svg.clientHeight);
};
const hold = event => { if (event.touches.length > 1 || view.width < W) event.preventDefault(); };
svg.addEventListener("touchmove", hold, {passive: false});
svg.addEventListener("wheel", event => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  zoom(Math.exp(-event.deltaY / 100), ...place(event.clientX, event.clientY));
}, {passive: false});
svg.onclick = event => {
  document.querySelector("output").textContent = event.target.closest("g")?.querySelector("title")?.textContent ?? "";
};
document.querySelectorAll("[data-key]").forEach(button => button.onclick = () => keys[button.dataset.key]());
document.querySelector(".zoom").hidden = false;
axes();
new ResizeObserver(axes).observe(svg);
}"""
_HASH = b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
ZOOM_HEAD = Markup(HEAD.replace("default-src 'none'", f"default-src 'none'; script-src 'sha256-{_HASH}'"))
"""Start of the page's head; the policy permits only this script, and forbids loads of every type."""
ZOOM_SHEET = """
.map{touch-action:pan-x pan-y;cursor:zoom-in}.map.zoomed{touch-action:none;cursor:grab}
.map:focus-visible,.zoom button:focus-visible,input:focus-visible{outline:2px solid var(--read);outline-offset:2px}
.zoom{display:flex;gap:6px;margin:8px 0;align-items:center;color:var(--faint);font-size:13px;flex-wrap:wrap}
.zoom[hidden]{display:none}
.zoom button{min-width:40px;min-height:40px;font-size:18px;color:var(--ink);background:var(--card);
border:1px solid var(--line);border-radius:8px}
output{display:block;white-space:pre-line;min-height:4.5em;overflow-wrap:anywhere}
"""
_BUTTONS = (("+", "+", "Zoom in"), ("-", "\u2212", "Zoom out"), ("0", "0", "Show all"))


def zoom_buttons() -> Markup:
    """Build the zoom buttons. They are hidden unless the script of the page runs."""
    buttons = join(
        tag("button", text, type="button", data_key=key, aria_label=label, title=label) for key, text, label in _BUTTONS
    )
    keys = tag("span", "Keys on the map: + and \u2212, arrows, 0. Touch: pinch and drag.")
    return tag("div", buttons, keys, class_="zoom", hidden="")
