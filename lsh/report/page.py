"""Pieces of one page of HTML that needs nothing but itself: elements, tables, charts, style and a script that sorts.

Whatever is not `Html` is a text of somebody else and is escaped by the function that puts it into an element, so no
caller can forget it. The page forbids every request and every script but its own (Content Security Policy, level 3).
What a page says is not decided here; `lsh.report` is one.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from itertools import count
from typing import Any, NamedTuple

# What a parser of HTML would drop or change, or what no UTF-8 has: control characters, surrogates, noncharacters.
_UNSAFE = {
    **{c: 0x2400 + c for c in range(0x20) if chr(c) not in "\t\n"},
    0x7F: 0x2421,
    **dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000), *range(0xFDD0, 0xFDF0), 0xFFFE, 0xFFFF], 0xFFFD),
    **{plane + last: 0xFFFD for plane in range(0x10000, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF)},
}
VOID = {"meta", "link"}
WIDTH, HEIGHT = 400, 236  # of a chart, in units that are pixels on a phone, so that its letters stay readable there
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 18, 40  # margins of a chart


class Html(str):
    """Markup that is done, to tell it from a text."""

    __slots__ = ()


def element(name: str, /, *children: object, **attributes: object) -> Html:
    """Return an element; children and attributes that are no `Html` are escaped.

    Parameters
    ----------
    name : str
        Of the element.
    *children : object
        `Html` as it is, all else by ``str`` as text.
    **attributes : object
        ``True`` writes the bare name, ``None`` nothing. A trailing underscore is dropped, others become hyphens.

    Examples
    --------
    >>> from lsh.report.page import element
    >>> element("p", "1 < 2", element("b", "!"), class_="note")
    '<p class="note">1 &lt; 2<b>!</b></p>'
    """
    head = name
    for key, value in attributes.items():
        if value is not None:
            head += f" {key.rstrip('_').replace('_', '-')}"
            head += "" if value is True else f'="{text(value)}"'
    return Html(f"<{head}>") if name in VOID else Html(f"<{head}>{joined(children)}</{name}>")


def text(value: object) -> Html:
    """Return a value as text that no parser takes for markup; a control character becomes the picture of itself."""
    return value if isinstance(value, Html) else Html(escape(str(value).translate(_UNSAFE)))


def joined(parts: Iterable[object], between: str = "") -> Html:
    """Return parts one after the other, each as `text` gives it."""
    return Html(between.join(map(text, parts)))


class Cell(NamedTuple):
    """A cell of a table: what it shows, and the number it is sorted by; without one it is sorted as text."""

    shown: object
    number: float | None = None
    right: bool = True  # whether a number stands to the right


def table(heads: Sequence[str], rows: Iterable[Sequence[Cell]], *, foot: Sequence[object] = (), name: str) -> Html:
    """Return a table that sorts by a click on a head; the foot stays below."""
    body = []
    numeric, right = [False] * len(heads), [False] * len(heads)
    for row in rows:
        cells = []
        for column, cell in enumerate(row):
            numbered = cell.number is not None
            numeric[column], right[column] = numbered, numbered and cell.right
            value = None if cell.number is None else f"{cell.number:.12g}"
            cells.append(element("td", cell.shown, class_=_right(right[column]), data_value=value))
        body.append(element("tr", *cells))
    head = []
    for label, sorts, ends in zip(heads, numeric, right):
        kind = "number" if sorts else "text"
        button = element("button", label, type="button")
        head.append(element("th", button, scope="col", class_=_right(ends), data_sort=kind))
    parts = [element("thead", element("tr", *head)), element("tbody", *body)]
    if foot:
        last = [element("td", value, class_=_right(ends)) for value, ends in zip(foot, right)]
        parts.append(element("tfoot", element("tr", *last)))
    return element("div", element("table", *parts, id=name), class_="scroll")


def _right(ends: bool) -> str | None:
    return "number" if ends else None


def bar(share: float, said: object = "", strong: bool = False) -> Html:
    """Return a bar that is filled by a share, 0 to 1, and words behind it."""
    filled = element("rect", width=f"{100 * share:.2f}", height=8)
    size = {"viewBox": "0 0 100 8", "preserveAspectRatio": "none", "aria-hidden": "true"}
    drawn = element("svg", filled, class_="bar strong" if strong else "bar", **size)
    return element("span", drawn, element("span", said), class_="share")


# ---- charts ----


class Frame(NamedTuple):
    """The field of a chart: which values its axes reach from and to."""

    left: float
    right: float
    top: float

    def x(self, value: float) -> float:
        """Return where a value lies from the left."""
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - self.left) / (self.right - self.left)

    def y(self, value: float) -> float:
        """Return where a value lies from the top."""
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.top

    def drawn(self, name: str, marks: Iterable[object], ticks: Any, levels: Any, across: str, up: str) -> Html:
        """Return the chart: marks over a grid; ticks and levels are pairs of a value and its label."""
        bottom, end = self.y(0), WIDTH - RIGHT
        parts: list[object] = [element("title", name)]
        for value, label in levels:
            y = f"{self.y(value):.1f}"
            parts.append(element("line", x1=LEFT, x2=end, y1=y, y2=y, class_="axis" if value == 0 else "grid"))
            parts.append(label_at(LEFT - 6, self.y(value) + 4, label, "end"))
        for value, label in ticks:
            parts.append(label_at(self.x(value), bottom + 16, label))
        parts.append(label_at((LEFT + end) / 2, HEIGHT - 5, across, class_="name"))
        parts.append(label_at(LEFT, TOP - 8, up, "start", class_="name"))
        return element("svg", *parts, *marks, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", class_="chart")


def label_at(x: float, y: float, words: object, anchor: str = "middle", class_: str | None = None) -> Html:
    """Return words in a chart."""
    return element("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=class_)


def path(points: Iterable[tuple[float, float]], class_: str) -> Html:
    """Return a line through points."""
    return element("path", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), class_=class_)


def round_levels(most: int) -> list[int]:
    """Return three to six round numbers from 0 to `most` or a little more, as the levels of a chart.

    Examples
    --------
    >>> from lsh.report.page import round_levels
    >>> round_levels(3), round_levels(740)
    ([0, 1, 2, 3], [0, 200, 400, 600, 800])
    """
    step = next(step for power in count() for step in (10**power, 2 * 10**power, 5 * 10**power) if most <= 5 * step)
    return list(range(0, max(-(-most // step), 2) * step + 1, step))


# ---- the page ----


def document(title: str, body: Html) -> str:
    """Return the whole page."""
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(STYLE)}'; script-src '{_digest(SCRIPT)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),  # else a browser asks the server for one
        element("title", title),
        element("style", Html(STYLE)),
    ]
    script = element("script", Html(SCRIPT))
    parts = [element("head", *head), element("body", element("main", body), script)]
    return f"<!doctype html>\n{element('html', *parts, lang='en')}\n"


def _digest(source: str) -> str:
    """Return by which name the policy lets a style or script be used."""
    return "sha256-" + b64encode(sha256(source.encode()).digest()).decode()


STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fbfaf8; --card: #fff; --ink: #23262b; --quiet: #666b74; --line: #e3e0da; --bar: #a5acb8;
  --accent: #b3421b; --tint: #fae3d8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16181c; --card: #1e2126; --ink: #e4e5e8; --quiet: #9aa0aa; --line: #31353c; --bar: #5d6673;
    --accent: #ff9a6b; --tint: #4f2c1c;
  }
}
* { box-sizing: border-box }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100% }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif;
}
main { max-width: 64rem; margin: 0 auto; padding: 3.5rem 1.5rem 5rem }
h1 { font-size: 2rem; line-height: 1.2; font-weight: 650; letter-spacing: -.015em; margin: 0 0 .5rem; max-width: 38rem }
h2 { font-size: 1.25rem; font-weight: 650; letter-spacing: -.01em; margin: 3.5rem 0 .4rem }
h3 { font-size: 1rem; font-weight: 650; margin: 2rem 0 .6rem }
p { margin: .4rem 0 1rem; max-width: 44rem }
.over { color: var(--quiet); font-size: .875rem; margin: 0 0 .75rem }
.note, figcaption { color: var(--quiet); font-size: .875rem }
.accent { color: var(--accent) }
.tiles { display: grid; gap: 1px; grid-template-columns: repeat(4, 1fr); margin: 2rem 0 0; padding: 0;
  background: var(--line); border: 1px solid var(--line); border-radius: 10px; overflow: hidden }
.tiles div { background: var(--card); padding: 1rem 1.15rem }
.tiles dt { color: var(--quiet); font-size: .8125rem }
.tiles dd { margin: 0 }
.tiles .figure { font-size: 1.6rem; line-height: 1.3; font-weight: 600; letter-spacing: -.015em;
  font-variant-numeric: tabular-nums }
.tiles .more { color: var(--quiet); font-size: .8125rem }
.columns { display: grid; gap: 1.25rem; grid-template-columns: 1fr 1fr; align-items: start; margin-top: 1.25rem }
.columns > * { min-width: 0 }
figure, .pair, .panel { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.1rem 1.25rem }
figure h3 { margin: 0 0 .5rem }
figcaption { margin-top: .5rem }
.chart { display: block; width: 100%; height: auto; overflow: visible }
.chart text { fill: var(--quiet); font-size: 11px; font-variant-numeric: tabular-nums;
  paint-order: stroke; stroke: var(--card); stroke-width: 3px; stroke-linejoin: round }
.chart .loud { fill: var(--accent); font-weight: 600 }
.chart .grid { stroke: var(--line) }
.chart .axis { stroke: var(--quiet) }
.chart rect { fill: var(--bar) }
.chart rect.same { fill: var(--accent) }
.chart .torn { stroke: var(--card); stroke-width: 4; fill: none }
.chart .curve { fill: none; stroke: var(--bar); stroke-width: 2.5 }
.chart .mark { stroke: var(--quiet); stroke-dasharray: 3 3 }
.chart .whisker { stroke: var(--accent); stroke-opacity: .55 }
.chart circle { fill: var(--accent) }
.scroll { overflow-x: auto; margin: .5rem 0 0 }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums }
th, td { text-align: left; vertical-align: top; padding: .45rem .9rem .45rem 0; border-bottom: 1px solid var(--line) }
th:last-child, td:last-child { padding-right: 0 }
th { padding-top: 0; white-space: nowrap }
.number { text-align: right; white-space: nowrap }
.number + td:not(.number), .number + th:not(.number) { padding-left: .6rem }
#sizes td:last-child { width: 55% }
#survival td:last-child { width: 35% }
tfoot td { color: var(--quiet) }
th button { all: unset; cursor: pointer; color: var(--quiet); font-size: .8125rem; font-weight: 500 }
th button:hover { color: var(--ink) }
th button:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
th[aria-sort] button { color: var(--accent) }
th[aria-sort="ascending"] button::after { content: " \\2191" }
th[aria-sort="descending"] button::after { content: " \\2193" }
.share { display: grid; grid-template-columns: minmax(4rem, 1fr) 4.5rem; gap: .6rem; align-items: center }
.share span { white-space: nowrap }
.bar { display: block; width: 100%; height: 8px; background: var(--line); border-radius: 4px }
.bar rect { fill: var(--bar) }
.bar.strong rect { fill: var(--accent) }
.alarm { color: var(--accent); font-weight: 600 }
.panel.alarm { border-color: var(--accent); font-weight: 500; margin: 1rem 0 }
.run td:first-child { color: var(--quiet); white-space: nowrap; width: 12rem }
.run td, .id, .excerpt { overflow-wrap: anywhere }
.id { display: inline-block; font-weight: 550; min-width: 4.5rem }
.excerpt { display: block; min-width: 16rem; color: var(--quiet) }
.pair { margin: .9rem 0 0; padding: 0; overflow: hidden }
.pair header { display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: baseline; padding: .6rem 1.15rem;
  border-bottom: 1px solid var(--line); font-size: .875rem; color: var(--quiet) }
.pair header b { color: var(--ink); font-weight: 600; font-variant-numeric: tabular-nums }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1px; background: var(--line) }
.sides div { background: var(--card); padding: .8rem 1.15rem 1rem; min-width: 0; font-size: .875rem }
.sides .who { display: block; color: var(--quiet); font-size: .8125rem; margin-bottom: .25rem }
.sides .words { display: block; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate }
mark { background: var(--tint); color: inherit; border-radius: 3px; box-shadow: 0 0 0 1px var(--tint) }
details { margin-top: .75rem; font-size: .875rem }
summary { cursor: pointer; color: var(--quiet) }
footer { margin-top: 4rem; color: var(--quiet); font-size: .8125rem }
@media (max-width: 46rem) {
  main { padding: 2rem 1rem 3rem }
  h1 { font-size: 1.6rem }
  h2 { margin-top: 2.75rem }
  .tiles { grid-template-columns: 1fr 1fr }
  .tiles div { padding: .8rem .9rem }
  .tiles .figure { font-size: 1.35rem }
  .columns, .sides { grid-template-columns: minmax(0, 1fr) }
  figure { padding: .9rem .8rem }
  .run td:first-child { width: 8rem; white-space: normal }
  .chart text { font-size: 13px }
  th { white-space: normal; vertical-align: bottom }
  .share .bar { display: none }
  .share { display: block }
  #sizes td:last-child, #survival td:last-child { width: auto }
  #clusters tr { display: grid; grid-template-columns: 5.5rem 7.5rem 1fr; border-bottom: 1px solid var(--line) }
  #clusters th, #clusters td { border: 0; text-align: left }
  #clusters :is(th, td):last-child { grid-column: 1 / -1; padding: 0 0 .6rem }
}
@media print { main { max-width: none; padding: 0 } figure, .pair { break-inside: avoid } }
"""

SCRIPT = """
"use strict";
const keyOf = (row, column, numeric) => {
  const cell = row.cells[column];
  return numeric ? Number(cell.dataset.value ?? -Infinity) : cell.textContent.trim();
};
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const body = head.closest("table").tBodies[0];
    const numeric = head.dataset.sort === "number";
    const before = head.getAttribute("aria-sort");
    const up = before ? before === "descending" : !numeric;
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const keyed = Array.from(body.rows, (row) => [keyOf(row, head.cellIndex, numeric), row]);
    keyed.sort(([a], [b]) => (up ? 1 : -1) * (numeric ? a - b || 0 : a.localeCompare(b, "en", { numeric: true })));
    body.append(...keyed.map(([, row]) => row));
  });
}
"""
