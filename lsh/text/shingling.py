"""The shingles of a text, and the exact Jaccard similarity of two shingle sets.

`Shingles` is a value: the length and the unit of a shingle, and how a text is normalised first. It defines the
shingles; the compiled modules find them. The method is from Broder, "On the resemblance and containment of documents"
(1997).
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from lsh._minhash import NORMALISATIONS, UNIT_CODES
from lsh._minhash import shingles as _shingles
from lsh.base import checks, errors
from lsh.base.threads import end_if_stopped
from lsh.text.batch import Batch
from lsh.text.collections import allows_missing, as_batch
from lsh.text.sets import MAX_CACHED, MAX_SPLIT, ShingleSets
from lsh.typing import Missing, NormalForm, Text, Texts, Unit

__all__ = ["Shingles", "jaccard", "jaccard_matrix"]

UNITS: tuple[Unit, ...] = get_args(Unit)
MAX_UNITS = 2**62 - 1  # units of a shingle: more than any text has, and within the range of Py_ssize_t
NORMAL_FORMS: tuple[NormalForm, ...] = get_args(NormalForm)

PIECE = 1 << 20  # characters of a text that are normalised at once
LOCATED = 256  # characters of a text, at least, in which a unit is searched for
# Between a letter or digit and a space no normalisation looks at both sides: the pieces can be normalised one by one.
# The normal forms of some other signs, such as a digit in brackets, end in punctuation.
_BEFORE_SPACE = r"[^\W_\u2474-\u249b\U0001f100-\U0001f10c](?= )"
# Nor between two such letters of scripts without spaces; but a word may go on there.
_UNSPACED = (
    r"[\u0e01-\u0e2e\u0e81-\u0eae\u1000-\u1021\u1780-\u17a2\u3041-\u3096\u30a1-\u30fa"
    r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]"
)
_WORD_BOUNDARY = re.compile(_BEFORE_SPACE)
_BOUNDARY = re.compile(f"{_BEFORE_SPACE}|{_UNSPACED}(?={_UNSPACED})")
_WHITE_SPACE = re.compile(r"\s+")
# A run of ASCII, another UTF-8 sequence (encoded surrogates included), or, as the only group, an undecodable byte.
_UTF8 = re.compile(
    rb"[\x00-\x7f]+|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xef][\x80-\xbf]{2}"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}|([\x80-\xff])"
)


@dataclass(frozen=True, repr=False)
class Shingles:
    r"""How a text becomes a set of shingles. Immutable.

    Parameters
    ----------
    n : int, optional
        Units per shingle, 1 or more. Default 8.
    unit : {"char", "byte", "word"}, optional
        ``"char"``: Unicode code points. ``"byte"``: bytes of the UTF-8 text. ``"word"``: words, joined by one space; a
        word is a maximal run of characters that ``\w`` matches.
    lowercase : bool, optional
        Convert the text to lower case, by ``str.lower``.
    collapse_whitespace : bool, optional
        Replace each run of characters that ``\s`` matches by one space, also at the start and the end of the text.
    strip_punctuation : bool, optional
        Remove the characters of the Unicode categories P*.
    normalize : {None, "NFC", "NFKC"}, optional
        Convert the text to this Unicode normal form.

    Raises
    ------
    TypeError, ValueError
        If a parameter has a wrong type or is out of range.

    Notes
    -----
    A text is normalised in this order: `normalize`, `lowercase`, `strip_punctuation`, `collapse_whitespace`. A text of
    1 to n - 1 units has one shingle, the whole text. A text without units has no shingles.

    ``bytes`` are decoded as UTF-8, encoded surrogates included. A byte that cannot be decoded counts as one character,
    is part of no word, and is not changed by normalisation. Where a text has characters beyond ASCII and is normalised
    or split into words, its shingles depend on the Unicode version of Python.

    Examples
    --------
    >>> import lsh
    >>> sorted(lsh.Shingles(4).of("The cat"))
    [' cat', 'The ', 'e ca', 'he c']
    >>> sorted(lsh.Shingles(2, unit="word", lowercase=True).of("The cat -- the CAT sat"))
    ['cat sat', 'cat the', 'the cat']
    """

    n: int = 8
    unit: Unit = "char"
    lowercase: bool = False
    collapse_whitespace: bool = False
    strip_punctuation: bool = False
    normalize: NormalForm | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.whole_number("n", self.n, 1, MAX_UNITS))
        object.__setattr__(self, "unit", checks.choice("unit", self.unit, UNITS))
        for name in ("lowercase", "collapse_whitespace", "strip_punctuation"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise errors.bad_type(name, f"must be True or False, got {getattr(self, name)!r}")
            object.__setattr__(self, name, bool(getattr(self, name)))
        object.__setattr__(self, "normalize", checks.choice("normalize", self.normalize, (None, *NORMAL_FORMS)))

    def __repr__(self) -> str:
        given = [repr(self.n), f"unit={self.unit!r}"]
        given += [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)[2:] if getattr(self, f.name) != f.default]
        return f"Shingles({', '.join(given)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as a dict of plain values, for `from_dict`.

        Returns
        -------
        dict
            The parameters of `Shingles`, by name.
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Shingles:
        """Make the shingles that `to_dict` described.

        Parameters
        ----------
        values : dict
            What `to_dict` returned, such as from a JSON file.

        Returns
        -------
        Shingles
            Equal to those that were described.

        Raises
        ------
        TypeError, ValueError
            If a key is missing or unknown, or a value is wrong.
        """
        return cls(**checks.keys("shingles", values, {field.name for field in fields(cls)}))

    @property
    def depends_on_unicode(self) -> bool:
        """Whether the shingles of texts beyond ASCII depend on the Unicode version of Python."""
        return normalizer(self) is not None or self.unit == "word"

    def of(self, text: Text) -> set[str | bytes]:
        """Return the set of shingles of a text, to look at.

        Parameters
        ----------
        text : str, bytes, bytearray or memoryview
            The document.

        Returns
        -------
        set of str
            The shingles; ``bytes`` where the unit is ``"byte"``, and for a shingle that is not valid UTF-8.

        Raises
        ------
        TypeError
            If `text` is no text.

        Examples
        --------
        >>> import lsh
        >>> sorted(lsh.Shingles(10, lowercase=True, collapse_whitespace=True).of("I love  PIZZA"))
        [' love pizz', 'i love piz', 'love pizza']
        """
        batch = Batch([checks.text("text", text)], transform=normalizer(self))
        found = _shingles(batch, UNIT_CODES[self.unit], self.n, ascii_flags(self))[0]
        return set(found) if self.unit == "byte" else {_readable(shingle) for shingle in found}

    def apply(self, text: Text) -> str | bytes:
        """Return the text as these parameters normalise it.

        Parameters
        ----------
        text : str, bytes, bytearray or memoryview
            The text.

        Returns
        -------
        str or bytes
            The normalised text: ``str`` for a ``str``, else ``bytes``.

        Raises
        ------
        TypeError
            If `text` is no text.

        Examples
        --------
        >>> import lsh
        >>> lsh.Shingles(5, lowercase=True, strip_punctuation=True, collapse_whitespace=True).apply("The  CAT sat.")
        'the cat sat'
        """
        if isinstance(text, str):
            return self._apply_to_str(text)
        checks.text("text", text)
        text = bytes(text)
        try:
            return self._apply_to_segment(text)
        except UnicodeDecodeError:
            pass
        pieces, start = [], 0
        for match in _UTF8.finditer(text):
            if match.group(1):  # an undecodable byte: not changed, and the text on either side is normalised by itself
                if match.start() > start:
                    pieces.append(self._apply_to_segment(text[start : match.start()]))
                pieces.append(match.group(1))
                start = match.end()
        return b"".join([*pieces, self._apply_to_segment(text[start:])])

    def _apply_to_segment(self, segment: bytes) -> bytes:
        """Normalise UTF-8, a long text piece by piece, as Python handles signals only between calls."""
        text, pieces, start = segment.decode("utf-8", "surrogatepass"), [], 0
        while start < len(text):
            boundary = _WORD_BOUNDARY.search(text, start + PIECE) if len(text) - start > PIECE else None
            end = boundary.end() if boundary else len(text)
            pieces.append(self._apply_to_str(text[start:end]).encode("utf-8", "surrogatepass"))
            start = end
            if start < len(text):
                end_if_stopped()
        return b"".join(pieces)

    def _apply_to_str(self, text: str) -> str:
        if self.normalize:
            text = unicodedata.normalize(self.normalize, text)
        if self.lowercase:
            text = text.lower()
        if self.strip_punctuation:
            text = text.translate(_without_punctuation())
        if self.collapse_whitespace:
            text = _WHITE_SPACE.sub(" ", text)
        return text


def _readable(shingle: bytes) -> str | bytes:
    try:
        return shingle.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return shingle


@lru_cache(maxsize=1)
def _without_punctuation() -> dict[int, None]:
    """Return the translation table that removes the categories P*."""
    return {c: None for c in range(0x110000) if unicodedata.category(chr(c)).startswith("P")}


def normalizer(shingles: Shingles) -> Callable[[str | bytes], str | bytes] | None:
    """Return the function that normalises a text beyond ASCII; ``None`` if texts are not normalised."""
    changes = shingles.lowercase or shingles.collapse_whitespace or shingles.strip_punctuation or shingles.normalize
    return shingles.apply if changes else None


def ascii_flags(shingles: Shingles) -> int:
    """Return how the compiled modules normalise ASCII, as flags; no normal form changes ASCII."""
    return sum(flag for name, flag in NORMALISATIONS.items() if getattr(shingles, name))


def is_regular(shingles: Shingles) -> bool:
    """Return whether the flags of `ascii_flags` say all of the normalisation."""
    return shingles.normalize is None


def original_spans(shingles: Shingles, text: bytes, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return where units of a normalised text are in the text itself.

    Parameters
    ----------
    shingles : Shingles
        The normalisation, and the unit.
    text : bytes
        The text as it is, as UTF-8.
    spans : list of (int, int)
        Numbers of units: the first one, and the one behind the last one.

    Returns
    -------
    list of (int, int)
        Where the first unit begins and where the last one ends, in bytes.
    """
    pieces, counts, start, place = list[tuple[int, bytes]](), [0], 0, 0
    characters = text.decode("utf-8", "surrogateescape")
    boundaries = _WORD_BOUNDARY if shingles.unit == "word" else _BOUNDARY
    while start < len(characters):
        boundary = boundaries.search(characters, start + LOCATED)
        end = boundary.end() if boundary else len(characters)
        piece = characters[start:end].encode("utf-8", "surrogateescape")
        pieces.append((place, piece))
        counts.append(counts[-1] + len(_units_of(shingles, piece)))
        start, place = end, place + len(piece)
    found = []
    for first, last in spans:
        at = bisect_right(counts, first) - 1
        begin = _beginning(shingles, pieces[at][1], first - counts[at]) + pieces[at][0]
        at = bisect_left(counts, last) - 1
        found.append((begin, _ending(shingles, pieces[at][1], last - counts[at]) + pieces[at][0]))
    return found


def _units_of(shingles: Shingles, text: bytes) -> list[bytes]:
    """Return the units of a text that is normalised here."""
    batch = Batch([text], transform=normalizer(shingles))
    units: list[bytes] = _shingles(batch, UNIT_CODES[shingles.unit], 1, ascii_flags(shingles))[0]
    return units


def _characters(text: bytes) -> list[int]:
    """Return where the characters of a text begin, and where the last one ends."""
    found = [0]
    for match in _UTF8.finditer(text):
        found += range(match.start() + 1, match.end() + 1) if text[match.start()] < 0x80 else [match.end()]
    return found


def _beginning(shingles: Shingles, text: bytes, unit: int) -> int:
    """Return where the character begins that makes the text before it and itself have more than `unit` units."""
    ends = _characters(text)
    return ends[bisect_right(ends, unit, key=lambda end: len(_units_of(shingles, text[:end]))) - 1]


def _ending(shingles: Shingles, text: bytes, count: int) -> int:
    """Return where the shortest beginning of a text ends that has its first `count` units."""
    ends, wanted = _characters(text), _units_of(shingles, text)[:count]
    return ends[bisect_left(ends, True, key=lambda end: _units_of(shingles, text[:end])[:count] == wanted)]


def sets_maker(
    shingles: Shingles, texts: list[Text] | Batch, max_cached: int = MAX_CACHED, max_split: int = MAX_SPLIT
) -> Callable[[], ShingleSets]:
    """Return a function that makes the exact shingle sets of texts, or of a batch that has not been normalised.

    Each thread needs its own. `max_cached` is the bytes of their cache, `max_split` the shingles of a long text that
    are in memory at once.
    """
    batch = Batch(texts, transform=normalizer(shingles))
    unit, flags = UNIT_CODES[shingles.unit], ascii_flags(shingles)
    return partial(ShingleSets, batch, unit, shingles.n, flags, max_cached=max_cached, max_split=max_split)


def shingle_sets(shingles: Shingles, texts: list[Text] | Batch) -> ShingleSets:
    """Return the exact shingle sets of texts, for one thread."""
    return sets_maker(shingles, texts)()


def checked_shingles(shingles: object) -> Shingles:
    """Return `shingles`, or the default where it is ``None``."""
    if shingles is None:
        return Shingles()
    return checks.instance("shingles", shingles, Shingles, "a Shingles", "; use lsh.Shingles(n, unit=...)")


def jaccard(a: Text, b: Text, *, shingles: Shingles | None = None) -> float:
    """Return the exact Jaccard similarity of the shingle sets of two texts.

    Parameters
    ----------
    a, b : str, bytes, bytearray or memoryview
        The documents.
    shingles : Shingles, optional
        Default: ``Shingles(8)``.

    Returns
    -------
    float
        ``|A & B| / |A | B|``, one division of two counts; 0.0 if a text has no shingles.

    Raises
    ------
    TypeError
        If `a` or `b` is not a text.

    Notes
    -----
    Equal shingles are found by their hashes; then their bytes are compared, so the result is exact.

    Examples
    --------
    >>> import lsh
    >>> a = "what's the flight time from Berlin to Helsinki?"
    >>> lsh.jaccard(a, "what's the flight time from Berlin to Oulu?", shingles=lsh.Shingles(4))
    0.7142857142857143
    """
    sets = shingle_sets(checked_shingles(shingles), [checks.text("a", a), checks.text("b", b)])
    return float(sets.matrix(1, 1)[0, 0])


def jaccard_matrix(
    texts: Texts, others: Texts | None = None, *, shingles: Shingles | None = None, missing: Missing = "error"
) -> NDArray[np.float64]:
    """Return the exact Jaccard similarities of all pairs of texts.

    Parameters
    ----------
    texts : iterable of str or bytes, numpy array, or Arrow column
        ``n`` documents, as for `MinHasher.fingerprints`.
    others : iterable of str or bytes, numpy array, or Arrow column, optional
        ``m`` documents to compare `texts` with. Default: `texts` itself.
    shingles : Shingles, optional
        Default: ``Shingles(8)``.
    missing : {"error", "empty"}, optional
        What to do with ``None`` or a null: raise a ValueError, or treat it as an empty text.

    Returns
    -------
    numpy.ndarray
        float64, shape ``(n, m)``: row i and column j hold the similarity of ``texts[i]`` and ``others[j]``.

    Raises
    ------
    MemoryError
        If there is not enough memory for the result: 8 bytes a pair, 3.2 GB for all pairs of 20,000 texts.
        `find_pairs` returns the similar pairs only.

    Examples
    --------
    >>> import lsh
    >>> lsh.jaccard_matrix(["a cat", "a cat"], ["a cat", "two dogs"], shingles=lsh.Shingles(2))
    array([[1., 0.],
           [1., 0.]])
    """
    shingles = checked_shingles(shingles)
    allowed = allows_missing(missing)
    batch = as_batch("texts", texts, allowed)
    rows, first_column = len(batch), 0
    if others is not None:
        batch, first_column = Batch.join([batch, as_batch("others", others, allowed)]), rows
    try:
        return shingle_sets(shingles, batch).matrix(rows, first_column)
    except MemoryError:
        columns = len(batch) - first_column
        raise MemoryError(
            f"not enough memory for {rows:,} x {columns:,} similarities of 8 bytes, {8e-9 * rows * columns:,.1f} GB; "
            "compare fewer texts at a time, or use find_pairs for the similar pairs only"
        ) from None
