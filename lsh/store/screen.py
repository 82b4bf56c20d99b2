"""Screening of new documents: reject near duplicates of the documents of an index, and recommend similar documents.

A `Screen` compares a new document with all documents of an `Index`, and adds it unless it is rejected. The two
similarities at which it rejects and recommends are stored with the index.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from lsh.base import checks, errors, threads
from lsh.segments.manifest import DAY, chosen_parameters
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher
from lsh.sketch.planning import Plan
from lsh.store import arguments
from lsh.store.index import Index
from lsh.store.matches import Matches
from lsh.store.query import bands_recall, check_recall, warn_without_texts
from lsh.text.batch import Batch
from lsh.text.shingling import Shingles
from lsh.typing import Decision, DocId, Lookup, Missing, Sketch, Text, Texts, Time

__all__ = ["Screen", "Verdict"]

DECISIONS: tuple[Decision, ...] = get_args(Decision)

REJECT, RECOMMEND = 0.9, 0.5
TOP = 10
SHINGLES = Shingles(3, "word", lowercase=True)
COMPONENTS = 400  # the standard error of an estimate is at most sqrt(1/4/400), 2.5 %, and its 95 % interval +-5 %
RECALL = 0.95
NOTE = "screen"  # the key of the thresholds in the note of an index


class Verdict(NamedTuple):
    """What a screen decides about a document.

    Attributes
    ----------
    decision : {"accept", "similar", "reject"}
        ``"reject"``: a document of the index is as similar as `Screen.reject` or more. ``"similar"``: the most similar
        one reaches `Screen.recommend`. ``"accept"``: none does.
    matches : Matches
        The documents of the index that reach `Screen.recommend`, the most similar first, at most `Screen.top`.
    """

    decision: Decision
    matches: Matches


class Screen:
    """Decides about new documents by their similarity to the documents of an index.

    Parameters
    ----------
    index : Index
        The documents that are known. `submit` requires that it is open for writing.
    reject : float, optional
        The Jaccard similarity from which a document is rejected. Default: as stored with the index, else 0.9.
    recommend : float, optional
        The Jaccard similarity from which documents are recommended, at most `reject`. Default: as stored with the
        index, else 0.5.
    top : int, optional
        The most matches of a verdict. Default 10.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong, or the index finds less than half of the documents at `recommend`.

    Notes
    -----
    `Screen.create` makes an index that suits a screen. Where the index has no texts to compare, a document is rejected
    by an estimate; the interval of a match says how reliable it is.

    Threads may share a screen: nothing is added to the index between the check of `submit` and its addition.

    Examples
    --------
    >>> import lsh, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with lsh.Screen.create(f"{folder}/papers") as screen:
    ...     for name, text in [
    ...         ("tides", "The tides of the northern bay are higher in spring, when the moon is close to the earth"),
    ...         ("again", "The tides of the northern bay are higher in spring, when the moon is close to the Earth!"),
    ...         ("moon", "In spring, when the moon is close to the earth, the tides of the northern bay are higher"),
    ...         ("bees", "Bees find their way home by the light of the sky, even when clouds hide the sun"),
    ...     ]:
    ...         decision, matches = screen.submit(text, name)
    ...         print(name, decision, [(match.id, round(match.similarity, 2)) for match in matches])
    tides accept []
    again reject [('tides', 1.0)]
    moon similar [('tides', 0.78)]
    bees accept []
    """

    def __init__(
        self, index: Index, reject: float | None = None, recommend: float | None = None, *, top: int = TOP
    ) -> None:
        self._index = checks.instance("index", index, Index, "an Index", "; for a path, use Screen.open")
        stored = index._note.get(NOTE, {})
        self._reject, self._recommend = _thresholds(
            stored.get("reject", REJECT) if reject is None else reject,
            stored.get("recommend", RECOMMEND) if recommend is None else recommend,
        )
        self._top = checks.whole_number("top", top, 1)
        _check_index(index, "recommend", self._recommend)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        reject: float = REJECT,
        recommend: float = RECOMMEND,
        *,
        top: int = TOP,
        hasher: MinHasher | None = None,
        bands: Bands | Plan | None = None,
        recall: float | None = None,
        shingles: Shingles | None = None,
        num_seeds: int | None = None,
        random_state: int | None = 0,
        sketch: Sketch = "8bit",
        texts: Literal["stored"] | Lookup | None = "stored",
        period: float = DAY,
    ) -> Screen:
        """Create an index for screening in a new folder, and open it for writing.

        Parameters
        ----------
        path : str or path
            The folder. It must not exist, or be empty.
        reject, recommend : float, optional
            The similarities at which documents are rejected and recommended; they are stored with the index. Default
            0.9 and 0.5.
        top : int, optional
            As for `Screen`.
        hasher, random_state, sketch, texts, period : optional
            As for `Index.create`.
        bands : Bands or Plan, optional
            The bands to use, in place of `recall`. Default: planned for `recommend`, which is the threshold of the
            index unless a plan is given.
        recall : float, optional
            The least probability with which the bands find a document at `recommend`. Default 0.95. At `reject` it is
            much closer to 1. With ``texts=None``, the estimates of about half of the documents of just this
            similarity are lower, and likewise at `reject`.
        shingles : Shingles, optional
            Default: those of `hasher`, else of a plan that is given as `bands`, else three consecutive words,
            ``Shingles(3, "word", lowercase=True)``.
        num_seeds : int, optional
            The number of components of a fingerprint. Default: that of a plan that is given as `bands`, else 400, so
            that an estimate is within 0.05 of the similarity in 95 % of cases. An error if `hasher` is given.

        Returns
        -------
        Screen
            With an empty index, open for writing.

        Raises
        ------
        FileExistsError
            If there is an index, or the folder has other files.
        TypeError, ValueError
            If a parameter is wrong, or no bands reach the recall.

        Notes
        -----
        With the defaults there are 83 bands, and a document takes about 1.2 kB beside its text: 10 bytes for each band
        and one for each component. Documents of a similarity of 0.2 are compared with a probability of 5 %, those of
        0.1 with 0.2 %; unrelated texts have few shingles of three words in common, so that a query compares few.
        """
        reject, recommend = _thresholds(reject, recommend)
        checks.whole_number("top", top, 1)
        if hasher is None and not isinstance(bands, Plan) and num_seeds is None:
            num_seeds = COMPONENTS
        if hasher is None and not (isinstance(bands, Plan) and bands.shingles) and shingles is None:
            shingles = SHINGLES
        threshold = None if isinstance(bands, Plan) else recommend
        planned = RECALL if bands is None and recall is None else recall
        parameters, lookup = chosen_parameters(
            hasher, bands, threshold, planned, shingles, num_seeds, random_state, sketch, texts, period
        )
        found = bands_recall(parameters, recommend, texts is not None)
        _check_recall("recommend", recommend, found, parameters.plan)
        if texts is None:
            warn_without_texts(parameters)
        index = Index._made(path, parameters, lookup, {NOTE: {"reject": reject, "recommend": recommend}})
        return cls(index, top=top)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        mode: Literal["r", "a"] = "r",
        *,
        texts: Lookup | None = None,
        top: int = TOP,
    ) -> Screen:
        """Open an index, and return a screen with the similarities that are stored with it.

        Parameters
        ----------
        path, mode, texts : optional
            As for `Index.open`.
        top : int, optional
            As for `Screen`.

        Returns
        -------
        Screen
            Close it, or use it as a context manager.

        Raises
        ------
        ValueError
            If the index finds less than half of the documents at the lower similarity.
        FileNotFoundError, NotADirectoryError, IndexLockedError, IndexDamagedError
            As for `Index.open`.
        """
        index = Index.open(path, mode, texts=texts)
        try:
            return cls(index, top=top)
        except BaseException:
            index.close()
            raise

    # ---- properties ----

    @property
    def index(self) -> Index:
        """The index."""
        return self._index

    @property
    def reject(self) -> float:
        """The similarity from which a document is rejected."""
        return self._reject

    @property
    def recommend(self) -> float:
        """The similarity from which documents are recommended."""
        return self._recommend

    @property
    def top(self) -> int:
        """The most matches of a verdict."""
        return self._top

    def __repr__(self) -> str:
        return f"<Screen reject={self._reject:g}, recommend={self._recommend:g}, {self._index!r}>"

    def store_thresholds(self) -> None:
        """Store `reject` and `recommend` with the index, for screens that are made later, and commit.

        So ``Screen(index, reject=0.85).store_thresholds()`` changes what `Screen.open` rejects from then on.
        """
        self._index._commit({**self._index._note, NOTE: {"reject": self._reject, "recommend": self._recommend}})

    def commit(self) -> None:
        """Make all additions durable, and visible to other processes; see `Index.commit`."""
        self._index.commit()

    def close(self) -> None:
        """Commit, and close the index."""
        self._index.close()

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *error: Any) -> None:
        """Close the index; after an exception without a commit."""
        self._index.__exit__(*error)

    # ---- deciding ----

    def check(self, text: Text) -> Verdict:
        """Decide about a document without adding it.

        Parameters
        ----------
        text : str, bytes, bytearray or memoryview
            The text.

        Returns
        -------
        Verdict
            The decision and the matches.

        Raises
        ------
        TypeError
            If `text` is no text.
        """
        own = checks.text("text", text)
        return self._verdict(self._index.query(own, top=self._top, min_similarity=self._recommend))

    def submit(self, text: Text, id: DocId, *, time: Time | None = None) -> Verdict:
        """Decide about a document and, unless it is rejected, add it to the index, as one step.

        Parameters
        ----------
        text : str, bytes, bytearray or memoryview
            The text.
        id : str, bytes or int
            Its id. If the index has a document with this id, that one is not among the matches, and is replaced unless
            the new text is rejected.
        time : float, datetime or numpy.datetime64, optional
            The time of the document; see `Index.add`.

        Returns
        -------
        Verdict
            The decision and the matches.

        Raises
        ------
        TypeError, ValueError
            If an argument is wrong, or the index is open for reading.
        """
        return self._submitted(*arguments.single(text, id, time))[0]

    def check_docs(self, texts: Texts, *, missing: Missing = "error", num_threads: int | None = None) -> list[Verdict]:
        """Decide about each of many documents without adding any.

        Parameters
        ----------
        texts : iterable of str or bytes, numpy array, or Arrow column
            The texts, as for `MinHasher.fingerprints`. They are not compared with each other.
        missing : {"error", "empty"}, optional
            What to do with ``None`` or a null in `texts`: raise a ValueError, or treat it as an empty text.
        num_threads : int, optional
            Number of threads, as for `MinHasher.fingerprints`. The result does not depend on it.

        Returns
        -------
        list of Verdict
            One for each text.

        Raises
        ------
        TypeError, ValueError
            If a text is wrong, as for `MinHasher.fingerprints`.
        """
        found = self._index.query_docs(
            texts, top=self._top, min_similarity=self._recommend, missing=missing, num_threads=num_threads
        )
        return [self._verdict(matches) for matches in found]

    def submit_docs(
        self,
        texts: Texts,
        ids: Iterable[DocId],
        *,
        times: Iterable[Time | None] | None = None,
        missing: Missing = "error",
        num_threads: int | None = None,
    ) -> list[Verdict]:
        """Submit many documents, one after the other: each is also compared with those that were added before it.

        Parameters
        ----------
        texts, ids, times, missing, num_threads : optional
            As for `Index.add_docs`.

        Returns
        -------
        list of Verdict
            One for each text, as `submit` returns them.

        Raises
        ------
        TypeError, ValueError
            If an argument is wrong; nothing was added then, unless `texts` has no length, such as an iterator.

        Notes
        -----
        If the function that returns the texts of the index fails, the documents before it have been submitted;
        `Index.rollback` undoes that.
        """
        workers = threads.number_of(num_threads)
        batches = arguments.document_batches(texts, ids, times, missing)
        return [verdict for batch in batches for verdict in self._submitted(*batch, workers)]

    def _submitted(
        self, codes: list[bytes], times: NDArray[np.int64], batch: Batch, num_threads: int | None = None
    ) -> list[Verdict]:
        def is_added(matches: Matches) -> bool:
            return self._verdict(matches).decision != "reject"

        found = self._index._submit(codes, times, batch, self._top, self._recommend, is_added, num_threads)
        return list(map(self._verdict, found))

    def _verdict(self, matches: Matches) -> Verdict:
        if not matches:
            return Verdict("accept", matches)
        return Verdict("reject" if matches[0].similarity >= self._reject else "similar", matches)


def rejecting(index: Index, threshold: float | None = None) -> Screen:
    """Return a screen that rejects from `threshold`, by default from what is stored, and recommends nothing else."""
    if threshold is None:
        threshold = index._note.get(NOTE, {}).get("reject", REJECT)
    similarity = checks.fraction("threshold", threshold, zero=False)
    _check_index(index, "threshold", similarity)
    return Screen(index, similarity, similarity, top=1)


def _check_index(index: Index, name: str, similarity: float) -> None:
    recall, _ = index._recalls(similarity, "exact" if index._verifies else "sketch")
    _check_recall(name, similarity, recall, index.plan)


def _check_recall(name: str, similarity: float, recall: float, plan: Plan) -> None:
    remedy = errors.message("use more bands, narrower ones, or a higher recall")
    if similarity < plan.threshold:
        wanted, least = errors.Parameter(name, similarity), errors.Parameter(name, plan.threshold)
        remedy = "use " + least + " or more, or create an index for " + wanted
        remedy += " (Screen.create, lsh index create --screen)"
    check_recall(name, similarity, recall, plan, remedy)


def _thresholds(reject: object, recommend: object) -> tuple[float, float]:
    """Return the two similarities, checked."""
    high = checks.fraction("reject", reject, zero=False)
    low = checks.fraction("recommend", recommend, zero=False)
    if low > high:
        reason = "must be at most " + errors.Parameter("reject", high) + "; give both"
        raise errors.bad_value(errors.Parameter("recommend", low), reason)
    return high, low
