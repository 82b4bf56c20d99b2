"""What `find_contained` returns: a `Contained`, with positions in bytes or in characters, and the shortened texts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsh.base.wording import counted
from lsh.passages.result import CUT, SearchResult, cut_texts, in_text
from lsh.typing import Text, TextsOrCallable

__all__ = ["Contained"]

SKIPPED = np.dtype([("item", np.int64), ("reason", "U6")])


class Contained(SearchResult):
    """The result of `find_contained`. Immutable; as an array it is its `hits`.

    Attributes
    ----------
    hits : numpy.ndarray
        Which text contains which item, by text and then by item, as a structured array: ``item`` and ``text`` (their
        positions), ``containment``, ``start`` and ``end`` of the best window in the UTF-8 of the text, in bytes and of
        whole characters, and ``shared`` (the shingles of the item that it has). float64 and int64.
    skipped : numpy.ndarray
        The items that were not looked for, as a structured array: ``item`` and ``reason``. ``"short"``: shorter than a
        shingle; ``"few"``: fewer shingles than `min_shared`; ``"common"``: too few shingles that count with
        `max_share`.
    """

    hits: NDArray[np.void]
    skipped: NDArray[np.void]
    _arrays = ("hits", "skipped")

    def __repr__(self) -> str:
        items = counted(self._counts["items"], "item")
        found = f"{self._counts['found_items']:,} of {items} in {self._counts['found_texts']:,} of "
        return f"<Contained: {found}{counted(self._size, 'text')}>"

    def __len__(self) -> int:
        """Return the number of hits."""
        return len(self.hits)

    def __getitem__(self, key: Any) -> Any:
        """Return what `hits` has, such as ``found["item"]``."""
        return self.hits[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.void]:
        return np.array(self.hits, dtype, copy=bool(copy) or dtype is not None) if copy or dtype else self.hits

    @cached_property
    def cuts(self) -> NDArray[np.void]:
        """What `cut` leaves out, in order: ``document``, ``start`` and ``end`` of runs that do not touch, in bytes."""
        hits = self.hits[np.lexsort((self.hits["start"], self.hits["text"]))]
        documents, starts, ends = hits["text"], hits["start"], hits["end"]
        is_other = np.ones(len(hits), np.bool_)
        is_other[1:] = documents[1:] != documents[:-1]
        above = (np.cumsum(is_other) - 1) * (int(ends.max(initial=0)) + 1)  # so that texts do not overlap
        ends = np.maximum.accumulate(ends + above)
        is_first = is_other.copy()
        is_first[1:] |= starts[1:] + above[1:] > ends[:-1]
        first = np.flatnonzero(is_first)
        last = np.append(first[1:], len(hits))[: len(first)] - 1
        cuts = np.empty(len(first), CUT)
        cuts["document"], cuts["start"], cuts["end"] = documents[first], starts[first], (ends - above)[last]
        cuts.flags.writeable = False
        return cuts

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that were used, as a new dict, by their names in `find_contained`."""
        return dict(self._parameters)

    def summary(self) -> dict[str, Any]:
        """Return the counts of the run.

        Returns
        -------
        dict
            ``items`` and ``texts``; ``missing``: those of both that are ``None``. ``skipped``: items that were not
            looked for.
            ``hits``: pairs of an item and a text that contains it; ``found_items`` and ``found_texts``: how many of
            each have a hit.
            ``bytes``: of all texts as UTF-8; ``found_bytes``: those of the texts with a hit; ``window_bytes``: those of
            their windows.
            ``common``: shingles that do not count because of `max_share`, each once.
            ``seconds``: for each stage.
        """
        return {**self._counts, "seconds": dict(self._counts["seconds"])}

    def cut(self, texts: TextsOrCallable) -> Iterator[Text | None]:
        """Yield the texts without the windows, each of the type that it has.

        Parameters
        ----------
        texts : iterable of str or bytes, numpy array, Arrow column, or callable
            The same texts as for `find_contained`, in the same order.

        Yields
        ------
        str, bytes, bytearray, memoryview or None
            As `Passages.cut` does.

        Raises
        ------
        ValueError
            If these are other texts, as far as their number and their lengths tell.
        """
        return cut_texts(self.cuts, texts, self._size)

    def text_spans(self, number: int, text: str) -> NDArray[np.void]:
        """Return the hits in a text with positions in its ``str``.

        Parameters
        ----------
        number : int
            The position of the text.
        text : str
            The text.

        Returns
        -------
        numpy.ndarray
            The rows of `hits` for this text; ``start`` and ``end`` count characters, so that ``text[start:end]`` is the
            window.

        Raises
        ------
        IndexError
            If there is no such text.
        ValueError
            If it is not this text, as far as its length tells.
        """
        return in_text(self.hits, "text", number, text, self._size)
