"""Documents that contain each other, of which one is kept: `deduplicate_contained`.

All documents are items of one table. In the order in which they are decided, each that is kept so far is searched for
those that come after it; one that is removed is searched for nothing, so that many copies cost little.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from lsh.base.arrays import Array
from lsh.base.progress import Progress, checked_progress
from lsh.base.threads import Idle, map_in_order, number_of
from lsh.engine.dedup import NEAR, REMOVED
from lsh.engine.matching import check_length, checked_keep, rank_by_priority, refuse_other_arguments
from lsh.engine.result import Deduplication
from lsh.passages.contained import Containing, batches, remedy_for_memory
from lsh.passages.item_search import ItemSearch
from lsh.passages.items import ItemTable
from lsh.text.batch import Batch, content_keys
from lsh.text.collections import allows_missing
from lsh.text.shingling import Shingles
from lsh.typing import Keep, Missing, SupportsArray, TextsOrCallable

__all__ = ["deduplicate_contained"]

MAX_SEARCHED = 64  # documents that a thread searches before what it found is looked at,
MANY_HITS = 1 << 16  # one alone after so many hits: others may be removed by then
TEXT = np.dtype([("size", np.int64), ("key", np.uint64), ("other_key", np.uint64), ("missing", np.bool_)])


def deduplicate_contained(
    texts: TextsOrCallable,
    threshold: float = 0.8,
    *,
    shingles: Shingles | None = None,
    window: float = 2.0,
    keep: Keep | Sequence[float] | SupportsArray = "longest",
    missing: Missing = "error",
    num_threads: int | None = None,
    progress: Progress | bool | None = None,
) -> Deduplication:
    """Find the documents that are within others, and decide which documents to keep.

    The documents are decided in the order of `keep`. A document is removed if one that is kept, and comes before it in
    this order, contains it, as `find_contained` defines it. A document is not removed because it contains others.

    Parameters
    ----------
    texts : iterable of str or bytes, numpy array, Arrow column, or callable
        ``n`` documents, as for `lsh.deduplicate`. They are read once, and held in memory in normalised form.
    threshold : float, optional
        The least containment, more than 0 and at most 1.
    shingles : Shingles, optional
        As for `find_contained`: three words by default.
    window : float, optional
        The length of the longest window, as a multiple of the length of the document that is within it; see
        `find_contained`. ``math.inf``: the whole document.
    keep : {"longest", "first", "last"} or array_like, optional
        The order: by bytes of UTF-8, by position, or by priority; as for `lsh.deduplicate`.
    missing : {"error", "empty"}, optional
        What to do with ``None``: raise a ValueError, or treat it as an empty text.
    num_threads : int, optional
        Number of threads. Default: one for each core that this process may use. The result does not depend on it.
    progress : callable or bool, optional
        As for `find_contained`; the stages are ``"items"`` and ``"searching"``.

    Returns
    -------
    Deduplication
        ``similarity`` is the containment of a removed document in the kept one that is named: of all kept ones that
        come before it the one with the highest containment, of these the first. There are no ``near`` pairs. Documents
        that are shorter than a shingle are kept, and counted as ``without_shingles``.

    Raises
    ------
    TypeError, ValueError
        If a text or a parameter is wrong; the message names it.

    Examples
    --------
    >>> import lsh
    >>> texts = ["The ferry sails on Monday.", "After the storm the ferry sails on Monday. Tickets are sold out."]
    >>> lsh.deduplicate_contained(texts).removed[["document", "kept", "similarity"]].tolist()
    [(0, 1, 1.0)]
    """
    containing = Containing(threshold, shingles, window, missing=missing)
    chosen = checked_keep(keep)
    return remove(containing, texts, lambda: chosen, number_of(num_threads), checked_progress(progress))


def remove(
    containing: Containing,
    texts: TextsOrCallable,
    priorities: Callable[[], Keep | Array],
    num_threads: int,
    report: Progress,
) -> Deduplication:
    """Do the work of `deduplicate_contained`, whose parameters are checked; `priorities` is called when all is read."""
    refuse_other_arguments("texts", texts, "threshold")
    with remedy_for_memory():
        return _removed(containing, texts, priorities, num_threads, report)


def _removed(
    containing: Containing,
    texts: TextsOrCallable,
    priorities: Callable[[], Keep | Array],
    num_threads: int,
    report: Progress,
) -> Deduplication:
    started, secrets, table = time.perf_counter(), (os.urandom(16), os.urandom(16)), containing.table()
    described = [np.empty(0, TEXT)]
    for _, make_batch in batches("texts", texts, allows_missing(containing.missing)):
        batch = make_batch()
        table.add(batch)
        described.append(_described(batch, secrets))
        report("items", table.count, None)
    known = np.concatenate(described)
    table.index(False)
    read, seconds = time.perf_counter(), {}
    seconds["items"] = read - started
    order = _order(priorities(), known["size"])
    removed, num_hits = _decide(table, order, num_threads, report)
    removed["identical"] = known[removed["document"]] == known[removed["kept"]]
    seconds["searching"] = time.perf_counter() - read
    keeps = np.ones(len(known), np.bool_)
    keeps[removed["document"]] = False
    counts = {
        "documents": len(known),
        "old": 0,
        "kept": len(known) - len(removed),
        "removed": len(removed),
        "for_old": 0,
        "identical": int(np.count_nonzero(removed["identical"])),
        "clusters": len(np.unique(removed["kept"])),
        "without_shingles": int(np.count_nonzero(table.states())),
        "missing": int(np.count_nonzero(known["missing"])),
        "candidates": num_hits,
        "connected": len(np.union1d(removed["document"], removed["kept"])),
        "compared": num_hits,
        "capped": 0,
        "seconds": seconds,
    }
    return Deduplication(keeps, removed, np.empty(0, NEAR), counts, containing.parameters)


def _described(batch: Batch, secrets: tuple[bytes, ...]) -> Array:
    """Return the sizes of texts, and keys that are equal if the texts are; nobody can make others with equal keys."""
    texts = np.empty(len(batch), TEXT)
    for name, secret in zip(("key", "other_key"), secrets):
        keys = np.empty(len(batch), np.uint64)
        content_keys(batch, secret, keys)
        texts[name] = keys
    texts["size"], texts["missing"] = batch.sizes(), batch.sizes(missing=-1) < 0
    return texts


def _order(keep: Keep | Array, sizes: Array) -> Array:
    """Return the positions of the documents in the order in which they are decided."""
    check_length(keep, len(sizes))
    order = np.arange(len(sizes))
    if isinstance(keep, str) and keep in ("first", "last"):
        return order if keep == "first" else order[::-1].copy()
    rank_by_priority(sizes if isinstance(keep, str) else keep, order)
    return order


def _decide(table: ItemTable, order: Array, num_threads: int, report: Progress) -> tuple[Array, int]:
    """Return the table of removed documents, ascending, and how many hits were looked at."""
    ranks, best, witnesses = np.empty_like(order), np.zeros(len(order)), np.empty_like(order)
    ranks[order] = np.arange(len(order))
    idle = Idle(lambda: ItemSearch(table, _no_place))
    size = done = num_hits = 0

    def some() -> Iterator[Array]:
        """Yield documents in order, few where many of the next ones may be removed by what is found."""
        nonlocal size
        at = 0
        while at < len(order):
            size = min(2 * size + 1, MAX_SEARCHED)
            yield order[at : at + size]
            at += size

    def search(numbers: Array) -> tuple[Array, Array]:
        with idle.one() as searching:
            return numbers, searching.search_items(numbers[best[numbers] == 0], ranks)

    for numbers, hits in map_in_order(search, some(), num_threads):
        bounds = np.searchsorted(ranks[hits["text"]], ranks[numbers], side="left").tolist()
        for number, start, stop in zip(numbers.tolist(), bounds, [*bounds[1:], len(hits)]):
            if best[number] == 0:  # it is kept: what was found in it counts
                own = hits[start:stop]
                own = own[own["containment"] > best[own["item"]]]
                best[own["item"]], witnesses[own["item"]] = own["containment"], number
        if len(hits) > MANY_HITS:
            size = 0
        num_hits, done = num_hits + len(hits), done + len(numbers)
        report("searching", done, len(order))
    removed = np.empty(np.count_nonzero(best), REMOVED)
    removed["document"] = np.flatnonzero(best)
    removed["kept"], removed["similarity"] = witnesses[removed["document"]], best[removed["document"]]
    return removed, num_hits


def _no_place(text: bytes, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stand in for the places in texts, which are not asked for."""
    return spans
