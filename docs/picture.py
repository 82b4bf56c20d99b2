"""Write report.svg, the picture at the top of the README: figures, charts and one pair of the report of the sample.

All of it is taken from the page that `lsh.report.html` makes; the colours are those of its style. An SVG does not wrap
lines, so texts are measured here with the widths of Helvetica, and each piece is fitted to its measured width. The file
holds no font and no address, and adapts to a dark background.

    python docs/picture.py [OUTPUT]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import resources
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

import lsh
from lsh.report.page import Html, element

DOCS = Path(__file__).resolve().parent
THRESHOLD = 0.8
PAIR = "Teenager swims"  # how the texts of the shown pair begin
TILES = ("Documents kept", "Text removed", "Recall promised", "Recall measured")
CAPTIONS = ("In colour: byte-identical copies.", "The line is planned, the dots are measured.")

WIDTH, MARGIN, GAP, PADDING = 830, 24, 14, 16
INNER = WIDTH - 2 * MARGIN
HALF = (INNER - GAP) / 2
CHART = 400, 236  # the view of a chart
LINE, TEXT_SIZE = 19, 13
FONTS = "Helvetica, Arial, 'Liberation Sans', 'Nimbus Sans', sans-serif"

# Widths of Helvetica from the space to the tilde in thousandths of its size (Adobe's AFM files); others count 556.
WIDTHS = [
    *(278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278),
    *([556] * 10),
    *(278, 278, 584, 584, 584, 556, 1015),
    *(667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833),
    *(722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611),
    *(278, 278, 278, 469, 556, 333),
    *(556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833),
    *(556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500),
    *(334, 260, 334, 584),
]

STYLE = """
text { fill: var(--ink); font-size: 13px }
.paper { fill: var(--paper); stroke: var(--line) }
.card { fill: var(--card); stroke: var(--line) }
.rule { stroke: var(--line) }
.quiet { fill: var(--quiet) }
.heading { font-size: 28px; font-weight: 700 }
.heading tspan { fill: var(--accent) }
.title { font-size: 15px; font-weight: 700 }
.figure { font-size: 24px; font-weight: 700 }
.strong { font-weight: 700 }
.marked { fill: var(--tint) }
.chart text { font-size: 12.5px }
"""


def sample_page() -> str:
    """Return the report of the sample."""
    lines = (DOCS.parent / "examples" / "sample.tsv").read_bytes().decode("utf-8").split("\n")[:-1]
    ids, texts = zip(*(line.split("\t") for line in lines))
    return lsh.report.html(lsh.deduplicate(texts, THRESHOLD), texts=texts, ids=ids)


def picture(page: str) -> str:
    """Return the picture of a page."""
    tiles, charts, article = 112.0, 212.0, 518.0
    pair, bottom = pair_card(page, article)
    parts = [
        element("title", "A report of lsh: what is removed, how similar it is, and what the bands find"),
        element("style", style()),
        element("rect", x=0.5, y=0.5, width=WIDTH - 1, height=bottom + MARGIN - 1, rx=12, class_="paper"),
        *header(page),
        *tile_cards(page, tiles),
        *chart_cards(page, charts),
        *pair,
    ]
    svg = element(
        "svg",
        Html("\n"),
        *(Html(f"{part}\n") for part in parts),
        xmlns="http://www.w3.org/2000/svg",
        width=WIDTH,
        height=f"{bottom + MARGIN:g}",
        viewBox=f"0 0 {WIDTH} {bottom + MARGIN:g}",
        font_family=FONTS,
        role="img",
    )
    return f"{svg}\n"


def style() -> Html:
    """Return the rules of the page for colours and charts, and those of the picture."""
    rules = resources.files("lsh.report").joinpath("page.css").read_text(encoding="utf-8")
    colours = rules[: rules.index("* {")]
    charts = re.findall(r"^\.chart [a-z.][^{]*\{[^}]*\}\n", rules, re.MULTILINE)
    return Html(f"\n{colours}{''.join(charts)}{STYLE}")


def fragment(page: str, start: str, end: str) -> list[ElementTree.Element]:
    """Return the elements of the page that begin and end so."""
    return [ElementTree.fromstring(found) for found in re.findall(f"{start}.*?{end}", page, re.DOTALL)]


def words_of(parsed: ElementTree.Element | None) -> str:
    """Return the text of an element."""
    return "" if parsed is None else "".join(parsed.itertext())


def line_at(x: float, y: float, words: object, class_: str | None = None, width: float | None = None) -> Html:
    """Return words on a line, fitted to a width where one is given."""
    fitted = {} if width is None else {"textLength": f"{width:.1f}", "lengthAdjust": "spacingAndGlyphs"}
    return element("text", words, x=f"{x:g}", y=f"{y:g}", class_=class_, **fitted)


def card(x: float, y: float, width: float, height: float) -> Html:
    """Return an empty card."""
    return element("rect", x=x, y=y, width=f"{width:g}", height=f"{height:g}", rx=9, class_="card")


# ---- header, tiles, charts ----


def header(page: str) -> Iterator[Html]:
    """Yield what the run was, and how many documents it removed."""
    (over,), (heading,) = fragment(page, '<p class="over"', "</p>"), fragment(page, "<h1", "</h1>")
    accent = element("tspan", words_of(heading[0]))
    yield line_at(MARGIN, 42, words_of(over), "quiet")
    yield element("text", accent, heading[0].tail, x=MARGIN, y=81, class_="heading")


def tile_cards(page: str, top: float) -> Iterator[Html]:
    """Yield the figures."""
    (tiles,) = fragment(page, '<dl class="tiles"', "</dl>")
    shown = {name: rest for name, *rest in ([words_of(line) for line in tile] for tile in tiles)}
    width = INNER / len(TILES)
    yield card(MARGIN, top, INNER, 86)
    for number, name in enumerate(TILES):
        x = MARGIN + number * width
        if number:
            yield element("line", x1=f"{x:g}", x2=f"{x:g}", y1=top, y2=top + 86, class_="rule")
        figure, more = shown[name]
        yield line_at(x + PADDING, top + 25, name, "quiet")
        yield line_at(x + PADDING, top + 52, figure, "figure")
        yield line_at(x + PADDING, top + 72, more, "quiet", measured(more))


def chart_cards(page: str, top: float) -> Iterator[Html]:
    """Yield the charts with their titles."""
    width = HALF - 2 * PADDING
    size = {"width": f"{width:g}", "height": f"{width * CHART[1] / CHART[0]:g}"}
    for number, figure in enumerate(re.findall("<figure>.*?</figure>", page, re.DOTALL)):
        x = MARGIN + number * (HALF + GAP)
        (title,), (chart,) = fragment(figure, "<h3", "</h3>"), re.findall("<svg.*?</svg>", figure, re.DOTALL)
        where = element("svg", x=f"{x + PADDING:g}", y=top + 46, **size).removesuffix("></svg>").removeprefix("<svg")
        yield card(x, top, HALF, 292)
        yield line_at(x + PADDING, top + 30, words_of(title), "title")
        yield line_at(x + PADDING, top + 276, CAPTIONS[number], "quiet")
        yield Html(chart.replace("<svg", f"<svg{where}", 1))


# ---- the pair ----


def pair_card(page: str, top: float) -> tuple[list[Html], float]:
    """Return two texts side by side with their differences marked, and where the card ends."""
    article = next(one for one in fragment(page, "<article", "</article>") if PAIR in words_of(one))
    similarity = words_of(article.find("header//b"))
    parts = []
    longest = 0.0
    for number, side in enumerate(article.findall("div/div")):
        x = MARGIN + number * (INNER / 2) + PADDING
        name, (_, excerpt) = words_of(side.find("span/bdi")), side
        fate = words_of(side.find("span")).removeprefix(name)
        parts.append(element("text", element("tspan", name, class_="strong"), fate, x=x, y=top + 64, class_="quiet"))
        lines = list(wrapped(excerpt, INNER / 2 - 2 * PADDING))
        parts += [piece for line, words in enumerate(lines) for piece in drawn(words, x, top + 88 + line * LINE)]
        longest = max(longest, len(lines))
    bottom = top + 88 + longest * LINE
    middle, below = WIDTH / 2, top + 42
    return [
        card(MARGIN, top, INNER, bottom - top),
        element("line", x1=MARGIN, x2=WIDTH - MARGIN, y1=below, y2=below, class_="rule"),
        element("line", x1=middle, x2=middle, y1=below, y2=bottom, class_="rule"),
        element("text", "similarity ", element("tspan", similarity, class_="strong"), x=MARGIN + PADDING, y=top + 27),
        *parts,
    ], bottom


Character = tuple[str, bool]  # and whether it is marked


def wrapped(excerpt: ElementTree.Element, width: float) -> Iterator[list[Character]]:
    """Yield the lines of an excerpt, broken at spaces."""
    pieces = [(excerpt.text or "", False)]
    for child in excerpt:
        pieces += [(words_of(child), child.tag == "mark"), (child.tail or "", False)]
    line: list[Character] = []
    word: list[Character] = []
    for character, marked in [(character, marked) for piece, marked in pieces for character in piece] + [(" ", False)]:
        word.append((character, marked))
        if character == " ":
            if line and measured("".join(one for one, _ in (*line, *word[:-1]))) > width:
                yield line
                line = []
            line, word = line + word, []
    yield line


def measured(words: str) -> float:
    """Return the width of words on a line."""
    widths = (WIDTHS[ord(character) - 32] if " " <= character <= "~" else 556 for character in words)
    return TEXT_SIZE * sum(widths) / 1000


def drawn(line: list[Character], x: float, y: float) -> Iterator[Html]:
    """Yield the pieces of a line, and what marks them."""
    for marked, run in groupby(line, lambda character: character[1]):
        piece = "".join(character for character, _ in run)
        words, before = piece.strip(), piece[: len(piece) - len(piece.lstrip())]
        left, width = x + measured(before), measured(words)
        if marked:
            size = {"width": f"{width + 2:.1f}", "height": LINE - 2}
            yield element("rect", x=f"{left - 1:.1f}", y=f"{y - 13:g}", **size, rx=3, class_="marked")
        if words:
            yield line_at(round(left, 1), y, words, width=width)
        x += measured(piece)


def main() -> None:
    """Write the picture."""
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "report.svg"
    output.write_bytes(picture(sample_page()).encode())


if __name__ == "__main__":
    main()
