"""Items within texts, whole or changed: `find_contained`.

The items go into a table in memory; the texts go by once, in batches for threads. With a limit for common shingles they
go by once more before, to be counted. The compiled module does both; this module defines the parameters and the result.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_args

import numpy as np

from lsh._minhash import UNIT_CODES
from lsh.base import checks, errors
from lsh.base.arrays import Array
from lsh.base.progress import Progress, checked_progress
from lsh.base.threads import Idle, map_in_order, number_of
from lsh.engine.matching import refuse_other_arguments
from lsh.passages.contained_result import SKIPPED, Contained
from lsh.passages.item_search import HIT, ItemSearch
from lsh.passages.items import REASONS, ItemTable
from lsh.text.batch import Batch
from lsh.text.collections import allows_missing, each_piece, extents
from lsh.text.shingling import Shingles, ascii_flags, is_regular, original_spans
from lsh.typing import Missing, TextsOrCallable

__all__ = ["find_contained"]

BATCH_TEXTS = 1 << 10  # texts in a batch for a thread, at most,
BATCH_BYTES = 1 << 20  # and about so many bytes
MAX_PIECE = 1 << 12  # texts in a piece of an iterator
MAX_SHARED = 2**32 - 2
NO_ROOM = (
    "not enough memory; the items and the hits are held in memory: remove equal texts first, raise the threshold, or "
    "search in parts"
)
WORDS = Shingles(3, "word", lowercase=True, strip_punctuation=True)


@dataclass(frozen=True)
class Containing:
    """When a text contains an item. Immutable; see `find_contained`."""

    threshold: float = 0.8
    shingles: Shingles | None = None
    window: float = 2.0
    min_shared: int | None = None
    max_share: float | None = None
    missing: Missing = "error"

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {"threshold": checks.fraction("threshold", self.threshold, zero=False)}
        if self.shingles is None:
            checked["shingles"] = WORDS
        else:
            remedy = '; use lsh.Shingles(n, unit="word")'
            checks.instance("shingles", self.shingles, Shingles, "a Shingles", remedy)
        checked["window"] = checks.number("window", self.window, 1.0)
        if self.min_shared is not None:
            checked["min_shared"] = checks.whole_number("min_shared", self.min_shared, 1, MAX_SHARED)
        if self.max_share is not None:
            checked["max_share"] = checks.fraction("max_share", self.max_share, zero=True)
        checks.choice("missing", self.missing, get_args(Missing))
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def own_shingles(self) -> Shingles:
        """The shingles, given or not."""
        return self.shingles or WORDS

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of a result, by name."""
        given = {name: getattr(self, name) for name in ("threshold", "window", "min_shared", "max_share")}
        return {**given, "shingles": self.own_shingles}

    def table(self) -> ItemTable:
        """Return an empty table for items."""
        shingles = self.own_shingles
        return ItemTable(
            UNIT_CODES[shingles.unit],
            shingles.n,
            ascii_flags(shingles),
            is_regular(shingles),
            shingles.apply,
            self.window,
            self.threshold,
            self.min_shared or 0,
        )


def find_contained(
    items: TextsOrCallable,
    texts: TextsOrCallable | None = None,
    threshold: float = 0.8,
    *,
    shingles: Shingles | None = None,
    window: float = 2.0,
    min_shared: int | None = None,
    max_share: float | None = None,
    missing: Missing = "error",
    num_threads: int | None = None,
    progress: Progress | bool | None = None,
) -> Contained:
    """Find short texts, such as the questions of a test set, within long ones, whole or changed.

    The containment of an item in a window of a text is the share of the item's shingles that the window has. A text
    contains an item if one of its windows has a containment of `threshold` or more. All such pairs are found.

    Parameters
    ----------
    items : iterable of str or bytes, numpy array, Arrow column, or callable
        ``m`` items to look for, as for `MinHasher.fingerprints`; they are held in memory. An iterator only with
        `texts`.
    texts : iterable of str or bytes, numpy array, Arrow column, or callable, optional
        ``n`` texts to search, as for `deduplicate`. An iterator is read once, and not held. Default: `items`; each text
        is then looked for in all others.
    threshold : float, optional
        The least containment, more than 0 and at most 1. Not used with `min_shared`.
    shingles : Shingles, optional
        Default: three words in lower case without punctuation, ``Shingles(3, "word", lowercase=True,
        strip_punctuation=True)``.
    window : float, optional
        The length of the longest window, as a multiple of the length of the item, both in units of the shingles; 1 or
        more. ``math.inf``: the whole text.
    min_shared : int, optional
        The least number of shingles that a window shares with an item, in place of a containment.
    max_share : float, optional
        Shingles that more than this share of the texts have do not count, as if the items did not have them. The texts
        are read twice. Default: all count.
    missing : {"error", "empty"}, optional
        What to do with ``None``: raise a ValueError, or treat it as an empty text.
    num_threads : int, optional
        Number of threads. Default: one for each core that this process may use. The result does not depend on it.
    progress : callable or bool, optional
        Called as ``progress(stage, done, total)``. The stages are ``"items"``, ``"counting"`` with `max_share`, and
        ``"searching"``, all counted in texts. ``True`` shows a bar for each stage if tqdm is installed, else a line on
        standard error.

    Returns
    -------
    Contained
        Which text contains which item, and where; and the items that were not looked for.

    Raises
    ------
    TypeError, ValueError
        If a text or a parameter is wrong; the message names it.

    Notes
    -----
    Of each item and text the best window is returned: the one that shares the most shingles, of these the shortest, and
    of these the first. An item that is shorter than a shingle, or has fewer shingles than `min_shared`, is not looked
    for, and is in `Contained.skipped`; so is one with too few shingles that count.

    A window with ``s`` of the ``m`` shingles of an item has one of any ``m - s + 1`` of them. Only so many, those that
    the fewest items have, are looked up for each text (as in the prefix filter of Chaudhuri, Ganti and Kaushik, *A
    primitive operator for similarity joins in data cleaning*, 2006). Shingles are compared byte for byte. The memory is
    about the size of the items and 30 bytes for each shingle that is looked up, a quarter of them at a threshold of
    0.8; and 48 bytes for each hit.

    Examples
    --------
    >>> import lsh
    >>> items = ["What is the capital of the island?", "How far is it to the harbour?"]
    >>> page = "A quiz for the ferry. 1. What's the capital of the island? 2. How far is it to the old harbour?"
    >>> found = lsh.find_contained(items, [page], 0.6)
    >>> found.hits["item"], found.hits["containment"]
    (array([0, 1]), array([0.6, 0.8]))
    >>> page[found.hits["start"][1] : found.hits["end"][1]]
    'How far is it to the'
    """
    containing = Containing(threshold, shingles, window, min_shared, max_share, missing)
    return find(containing, items, texts, number_of(num_threads), checked_progress(progress))


def find(
    containing: Containing, items: TextsOrCallable, texts: TextsOrCallable | None, num_threads: int, report: Progress
) -> Contained:
    """Do the work of `find_contained`, whose parameters are checked."""
    for name, value in (("items", items), ("texts", texts)):
        refuse_other_arguments(name, value, "threshold")
    again = texts is None or containing.max_share is not None
    if again and isinstance(items if texts is None else texts, Iterator):
        name = "items" if texts is None else "texts"
        reason = "is read twice, and must not be an iterator, which yields each text only once; pass a list, or a "
        raise errors.bad_value(name, reason + "callable that returns a new iterator")
    finding = _Finding(containing, items, items if texts is None else texts, texts is None, num_threads, report)
    with remedy_for_memory():
        return finding.result()


@contextmanager
def remedy_for_memory() -> Iterator[None]:
    """Let a MemoryError say what to do."""
    try:
        yield
    except MemoryError as error:
        raise errors.HeldMemoryError(NO_ROOM) from error


LazyBatch = tuple[int, Callable[[], Batch]]  # the position of its first text, and a function that a thread calls


def batches(name: str, texts: TextsOrCallable, missing: bool) -> Iterator[LazyBatch]:
    """Yield batches of the texts of a collection, which are made later; `missing` allows missing texts."""
    given, called, first = (texts(), f"{name}()", 0) if callable(texts) else (texts, name, 0)
    for piece in each_piece(called, given, MAX_PIECE):
        for start, stop in extents(piece, BATCH_TEXTS, BATCH_BYTES):
            yield first + start, partial(Batch, piece, first, missing, None, name, start, stop)
        first += len(piece)


@dataclass(eq=False)
class _Finding:
    """A search for items in texts."""

    containing: Containing
    items: TextsOrCallable
    texts: TextsOrCallable
    among_themselves: bool
    num_threads: int
    report: Progress
    num_texts: int | None = None  # where they were counted before the search
    seconds: dict[str, float] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.missing = allows_missing(self.containing.missing)
        self.table = self.containing.table()

    def result(self) -> Contained:
        """Find the items."""
        started = time.perf_counter()
        self._read_items()
        self.num_texts = self.table.count if self.among_themselves else None
        max_share = self.containing.max_share
        if max_share is not None:
            self.table.index(True)
            counted = time.perf_counter()
            self._ignore_common(max_share)
            self.seconds["counting"] = time.perf_counter() - counted
        self.table.index(False)
        self.seconds["items"] = time.perf_counter() - started - self.seconds.get("counting", 0.0)
        started = time.perf_counter()
        hits = self._search()
        self.seconds["searching"] = time.perf_counter() - started
        return self._result(hits)

    def _locate(self, text: bytes, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return original_spans(self.containing.own_shingles, text, spans)

    def _read_items(self) -> None:
        """Put the items into the table."""
        for _, make_batch in batches("items", self.items, self.missing):
            batch = make_batch()
            self.table.add(batch)
            self.totals["missing"] += batch.num_missing
            self.report("items", self.table.count, None)

    def _ignore_common(self, max_share: float) -> None:
        """Count the texts that have each shingle of an item, and let common ones not count."""
        total = np.zeros(self.table.num_entries, np.int64)
        idle = Idle(lambda: (ItemSearch(self.table, self._locate), np.zeros_like(total)))

        def count(lazy: LazyBatch) -> int:
            batch = lazy[1]()
            with idle.one() as (search, counts):
                search.count(batch, counts)
            return len(batch)

        counted = 0
        for texts in map_in_order(count, batches("texts", self.texts, self.missing), self.num_threads):
            counted += texts
            self.report("counting", counted, self.num_texts)
        self._check_number(counted)
        self.num_texts = counted
        for _, counts in idle.items:
            total += counts
        most = int(max_share * counted) + 1  # texts that are no larger share, but for rounding
        while most / max(counted, 1) > max_share:
            most -= 1
        self.totals["common"] = int(np.count_nonzero(total > most))
        self.table.ignore(total, most)

    def _search(self) -> Array:
        """Return the hits."""
        idle = Idle(lambda: ItemSearch(self.table, self._locate))

        def search(lazy: LazyBatch) -> tuple[Array, Counter[str]]:
            first, make_batch = lazy
            batch = make_batch()
            with idle.one() as searching:
                hits = searching.search(batch, first, self.among_themselves)
            texts, sizes = np.unique(hits["text"]), batch.sizes()
            found = {"found_texts": len(texts), "found_bytes": int(sizes[texts - first].sum())}
            totals = Counter(texts=len(batch), bytes=int(sizes.sum()), **found)
            totals["missing"] = 0 if self.among_themselves else batch.num_missing
            return hits, totals

        found = [np.empty(0, HIT)]
        for hits, totals in map_in_order(search, batches("texts", self.texts, self.missing), self.num_threads):
            found.append(hits)
            self.totals.update(totals)
            self.report("searching", self.totals["texts"], self.num_texts)
        self._check_number(self.totals["texts"])
        return np.concatenate(found)

    def _check_number(self, number: int) -> None:
        """Check that a callable gave as many texts as at the call before."""
        if self.num_texts is not None and number != self.num_texts:
            name = "items" if self.among_themselves else "texts"
            reason = f"gave {self.num_texts:,} texts at one call and {number:,} at the next; a callable must give the "
            raise errors.bad_value(name, reason + "same texts at each call")

    def _result(self, hits: Array) -> Contained:
        """Return the result, with counts."""
        states = self.table.states()
        skipped = np.empty(np.count_nonzero(states), SKIPPED)
        skipped["item"] = np.flatnonzero(states)
        skipped["reason"] = np.array(REASONS)[states[skipped["item"]]]
        totals = self.totals
        counts: dict[str, Any] = {
            "items": self.table.count,
            "texts": totals["texts"],
            "missing": totals["missing"],
            "skipped": len(skipped),
            "hits": len(hits),
            "found_items": len(np.unique(hits["item"])),
            **{name: totals[name] for name in ("found_texts", "bytes", "found_bytes", "common")},
            "seconds": self.seconds,
        }
        found = Contained(hits, skipped, totals["texts"], counts, self.containing.parameters)
        counts["window_bytes"] = int((found.cuts["end"] - found.cuts["start"]).sum())
        return found
