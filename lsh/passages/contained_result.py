"""What `find_contained` returns: a `Contained`, with positions in bytes or in characters, and the shortened texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsh.base.arrays import Array
from lsh.base.wording import counted
from lsh.engine.dedup import NEAR, REMOVED, rank_by_priority
from lsh.engine.matching import check_length, checked_keep
from lsh.engine.result import Deduplication
from lsh.passages.result import CUT, Immutable, cut_texts, in_text
from lsh.typing import Keep, SupportsArray, Text, TextsOrCallable

__all__ = ["Contained"]

TEXT = np.dtype([("size", np.int64), ("key", np.uint64), ("other_key", np.uint64), ("missing", np.bool_)])
SKIPPED = np.dtype([("item", np.int64), ("reason", "U6")])


class Contained(Immutable):
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
    _size: int
    _counts: dict[str, Any]
    _parameters: dict[str, Any]
    _texts: NDArray[np.void] | None

    def __init__(
        self,
        hits: NDArray[np.void],
        skipped: NDArray[np.void],
        size: int,
        counts: dict[str, Any],
        parameters: dict[str, Any],
        texts: NDArray[np.void] | None = None,
    ) -> None:
        for array in (hits, skipped):
            array.flags.writeable = False
        self.__dict__.update(hits=hits, skipped=skipped, _size=size, _counts=counts, _parameters=parameters)
        self.__dict__["_texts"] = texts  # what `deduplicate` needs of the texts that were looked for in each other

    def __reduce__(self) -> tuple[object, ...]:
        return Contained, (self.hits, self.skipped, self._size, self._counts, self._parameters, self._texts)

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

    def deduplicate(self, keep: Keep | Sequence[float] | SupportsArray = "longest") -> Deduplication:
        """Decide which texts to keep, of texts that were looked for in each other.

        The texts are decided in the order of `keep`. A text is removed if one that is kept, and comes before it in this
        order, contains it. So a text that contains others is not removed for them.

        Parameters
        ----------
        keep : {"longest", "first", "last"} or array_like, optional
            The order: by bytes of UTF-8, by position, or by priority; as for `lsh.deduplicate`.

        Returns
        -------
        Deduplication
            ``similarity`` is the containment of the removed text in the kept one, of several the one with the highest.
            There are no ``near`` pairs, and the parameters are those of `find_contained`.

        Raises
        ------
        TypeError, ValueError
            If items were looked for in other texts, or `keep` is wrong.

        Examples
        --------
        >>> import lsh
        >>> texts = ["The ferry sails on Monday.", "After the storm the ferry sails on Monday. Tickets are sold out."]
        >>> lsh.find_contained(texts).deduplicate().removed["document"]
        array([0])
        """
        if self._texts is None:
            raise ValueError("deduplicate requires texts that were looked for in each other: find_contained(texts)")
        return decided(self.hits, self._texts, checked_keep(keep), self._counts, self._parameters)

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


def decided(
    hits: Array, texts: Array, keep: Keep | Array, counts: dict[str, Any], parameters: dict[str, Any]
) -> Deduplication:
    """Return which texts are kept, by the hits of the texts in each other; see `Contained.deduplicate`."""
    check_length(keep, len(texts))
    ranks, order = np.arange(len(texts)), np.empty(len(texts), np.int64)
    if isinstance(keep, str) and keep == "last":
        ranks = ranks[::-1]
    elif not isinstance(keep, str) or keep == "longest":
        rank_by_priority(texts["size"] if isinstance(keep, str) else keep, order)
        ranks[order] = np.arange(len(texts))
    may_go = hits[ranks[hits["text"]] < ranks[hits["item"]]]
    # Of each text in its turn: first the highest containment, then the text that comes first.
    may_go = may_go[np.lexsort((ranks[may_go["text"]], -may_go["containment"], ranks[may_go["item"]]))]
    keeps, rows = np.ones(len(texts), np.bool_), list[int]()
    for row, (item, text) in enumerate(zip(may_go["item"].tolist(), may_go["text"].tolist())):
        if keeps[item] and keeps[text]:
            keeps[item] = False
            rows.append(row)
    chosen = may_go[rows]
    chosen = chosen[np.argsort(chosen["item"])]
    removed = np.empty(len(chosen), REMOVED)
    removed["document"], removed["kept"] = chosen["item"], chosen["text"]
    removed["similarity"] = chosen["containment"]
    removed["identical"] = texts[chosen["item"]] == texts[chosen["text"]]
    summary = {
        "documents": len(texts),
        "old": 0,
        "kept": len(texts) - len(removed),
        "removed": len(removed),
        "for_old": 0,
        "identical": int(removed["identical"].sum()),
        "clusters": len(np.unique(removed["kept"])),
        "without_shingles": counts["skipped"],
        "missing": int(texts["missing"].sum()),
        "candidates": len(hits),
        "connected": len(np.union1d(hits["item"], hits["text"])),
        "compared": len(hits),
        "capped": 0,
        "seconds": counts["seconds"],
    }
    return Deduplication(keeps, removed, np.empty(0, NEAR), summary, parameters)
