"""One page of HTML that needs no other file: elements, tables, and the page with its style and script.

Any value that is not `Html` is escaped when it is put into an element, so that no caller can forget it. The page
forbids all requests, and all scripts except its own (Content Security Policy, level 3). The style and the script are
`page.css` and `page.js` beside this file. The content of a page is decided by the modules that call this one.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from importlib import resources
from typing import NamedTuple

from lsh.base.version import __version__

# Characters that a parser of HTML drops or changes, or that UTF-8 cannot hold: controls, surrogates, noncharacters.
_UNSAFE = {
    **{c: 0x2400 + c for c in range(0x20) if chr(c) not in "\t\n"},
    0x7F: 0x2421,
    **dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000), *range(0xFDD0, 0xFDF0), 0xFFFE, 0xFFFF], 0xFFFD),
    **{plane + last: 0xFFFD for plane in range(0x10000, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF)},
}
VOID = {"meta", "link"}  # elements without an end tag


class Html(str):
    """Finished markup, as opposed to text."""

    __slots__ = ()


def element(name: str, /, *children: object, **attributes: object) -> Html:
    """Return an element; children and attributes that are not `Html` are escaped.

    Parameters
    ----------
    name : str
        Name of the element.
    *children : object
        `Html` is inserted unchanged; anything else is converted by `str` and escaped.
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
    """Return a value with markup escaped; a control character becomes its Unicode picture, such as U+2400."""
    return value if isinstance(value, Html) else Html(escape(str(value).translate(_UNSAFE)))


def joined(parts: Iterable[object], between: str = "") -> Html:
    """Return the parts joined, each as `text` returns it."""
    return Html(between.join(map(text, parts)))


class Section(Html):
    """A part of the page with a heading, which the table of contents names."""

    heading: str


def section(title: str, *parts: object) -> Section:
    """Return a part of the page with a heading."""
    made = Section(element("section", element("h2", title), *parts, id=_anchor(title)))
    made.heading = title
    return made


def contents(parts: Iterable[object]) -> Html:
    """Return a table of contents of the sections among the parts."""
    links = [
        element("a", part.heading, href=f"#{_anchor(part.heading)}") for part in parts if isinstance(part, Section)
    ]
    return element("nav", *links, class_="contents", aria_label="Contents")


def _anchor(title: str) -> str:
    return "part-" + title.lower().replace(" ", "-")


class Cell(NamedTuple):
    """A cell of a table: its content, and the number it is sorted by; without a number it is sorted as text."""

    shown: object
    number: float | None = None
    right: bool = True  # whether a number is aligned to the right

    @property
    def class_(self) -> str | None:
        """The class of its element."""
        return "number" if self.right and self.number is not None else None


def count(number: int) -> Cell:
    """Return a cell with a count."""
    return Cell(f"{number:,}", number)


def table(heads: Sequence[str], rows: Iterable[Sequence[Cell]], *, foot: Sequence[object] = (), name: str) -> Html:
    """Return a table that is sorted by a click on a heading; `foot` stays the last row."""
    body = []
    row: Sequence[Cell] = [Cell("")] * len(heads)
    for row in rows:
        values = [None if cell.number is None else f"{cell.number:.12g}" for cell in row]
        cells = [element("td", cell.shown, class_=cell.class_, data_value=value) for cell, value in zip(row, values)]
        body.append(element("tr", *cells))
    head = []
    for label, cell in zip(heads, row):  # all cells of a column have the same type
        kind = "text" if cell.number is None else "number"
        button = element("button", label, type="button")
        head.append(element("th", button, scope="col", class_=cell.class_, data_sort=kind))
    parts = [element("thead", element("tr", *head)), element("tbody", *body)]
    if foot:
        cells = [element("td", value, class_=cell.class_) for value, cell in zip(foot, row)]
        parts.append(element("tfoot", element("tr", *cells)))
    return element("div", element("table", *parts, id=name), class_="scroll")


def bar(share: float, label: object = "", strong: bool = False) -> Html:
    """Return a bar that is filled by a share, 0 to 1, and its label."""
    filled = element("rect", width=f"{100 * share:.2f}", height=8)
    size = {"viewBox": "0 0 100 8", "preserveAspectRatio": "none", "aria-hidden": "true"}
    drawn = element("svg", filled, class_="bar strong" if strong else "bar", **size)
    return element("span", drawn, element("span", label), class_="share")


def document(title: str, body: Html) -> str:
    """Return the whole page."""
    style, script = _read("page.css"), _read("page.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),  # without it a browser requests one
        element("title", title),
        element("style", style),
    ]
    footer = element("footer", f"Made by lsh {__version__}. This file is complete and loads nothing else.")
    parts = [element("head", *head), element("body", element("main", body, footer), element("script", script))]
    return f"<!doctype html>\n{element('html', *parts, lang='en')}\n"


def _read(name: str) -> Html:
    """Return a file of the package after a newline."""
    return Html("\n" + resources.files("lsh.report").joinpath(name).read_text(encoding="utf-8"))


def _digest(source: str) -> str:
    """Return the hash by which the policy allows a style or script."""
    return "sha256-" + b64encode(sha256(source.encode()).digest()).decode()
