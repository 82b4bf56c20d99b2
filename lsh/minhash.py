"""Fingerprints: `MinHasher` says what they mean, the floor below computes them.

A fingerprint has one component a seed: the minimum of that seed's hash over the shingles of a text. Two
fingerprints agree in a component with a probability equal to the Jaccard similarity of the two shingle sets (Broder
1997), so the fraction of equal components is an unbiased estimate of it.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sized
from itertools import islice
from math import sqrt
from operator import index
from typing import Any

import numpy as np

from lsh import checks, threads
from lsh._minhash import UNIT_CODES, count_equal, murmur3_fingerprints
from lsh.shingling import Shingles, checked_shingles

__all__ = ["MinHasher"]

SCHEME_VERSIONS = {"murmur3": 1}
MOST_SEEDS = 2**20  # components of a fingerprint: far beyond use, well within memory
CHUNK = 512  # texts a batch: enough to hide the cost of a call, few enough to share among threads

_LARGEST = {4: 0x7FFFFFFF, 8: 0xFFFFFFFFFFFFFFFF}  # of the order: int32 for 4 bytes, uint64 for 8
_DTYPES: dict[int, type] = {4: np.uint32, 8: np.uint64}

Text = str | bytes | bytearray | memoryview
Array = np.ndarray[Any, Any]


class MinHasher:
    """Computes and compares fingerprints. Immutable, and safe to share between threads.

    Parameters
    ----------
    seeds : int or sequence of int
        The number of components, or the uint32 seeds themselves.
    char_ngram : int, optional
        Bytes per shingle: short for ``shingles=Shingles(char_ngram, unit="byte")``. Default 8, where `shingles` is not
        given.
    random_state : int or None, optional
        Draws the seeds where `seeds` is a number, as ``numpy.random.RandomState(random_state).randint(0, 1e6, seeds)``
        does. The default, 0, makes every process agree; ``None`` draws fresh ones.
    hashbytes : {8, 4}, optional
        Bytes per component. Default 8.
    scheme : {"murmur3"}
        How components are made; see Notes.
    shingles : Shingles, optional
        How texts become sets of shingles.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of a wrong type or out of its range, or both `char_ngram` and `shingles` are given.

    Notes
    -----
    Scheme ``"murmur3"``, version 1: component i is the minimum over all shingles of MurmurHash3 with seed i; for
    ``hashbytes=4`` of x86_32, compared as int32 and returned as uint32, for ``hashbytes=8`` of the first half of
    x64_128, compared as uint64. A text without shingles has the largest value of that order throughout (`empty`). With
    these seeds and this order the fingerprints are those of mattilyra/LSH, wherever no component of theirs shows the
    value it starts from.

    The standard error of an estimated similarity J is ``sqrt(J (1 - J) / num_seeds)``.

    Examples
    --------
    >>> import lsh
    >>> hasher = lsh.MinHasher(seeds=400, char_ngram=5)
    >>> a = hasher.fingerprint("The cat sat on the mat.")
    >>> b = hasher.fingerprint("The red cat sat on the mat.")
    >>> exact = lsh.jaccard("The cat sat on the mat.", "The red cat sat on the mat.", shingles=hasher.shingles)
    >>> hasher.jaccard(a, b), exact
    (0.6275, 0.6153846153846154)
    """

    __slots__ = ("_empty", "_hashbytes", "_random_state", "_scheme", "_seed_count", "_seed_values", "_shingles")
    _empty: Array
    _hashbytes: int
    _random_state: int | None
    _scheme: str
    _seed_count: int | None
    _seed_values: Array
    _shingles: Shingles

    def __init__(
        self,
        seeds: int | Iterable[int],
        char_ngram: int | None = None,
        random_state: int | None = 0,
        hashbytes: int | None = None,
        *,
        scheme: str = "murmur3",
        shingles: Shingles | None = None,
    ) -> None:
        if char_ngram is not None:
            if shingles is not None:
                raise ValueError("char_ngram and shingles both say what a shingle is; give one of them")
            shingles = Shingles(checks.whole_number("char_ngram", char_ngram, 1), unit="byte")
        elif shingles is None:
            shingles = Shingles(8, unit="byte")
        checks.choice("scheme", scheme, tuple(SCHEME_VERSIONS))
        hashbytes = 8 if hashbytes is None else checks.whole_number("hashbytes", hashbytes, 0)
        if hashbytes not in _DTYPES:
            raise ValueError(f"hashbytes must be 4 or 8, got {hashbytes}")
        if random_state is not None:
            random_state = checks.whole_number("random_state", random_state, 0, 2**32 - 1)
        values, count = _seed_values(seeds, random_state)
        empty: Array = np.full(len(values), _LARGEST[hashbytes], _DTYPES[hashbytes])
        for name, value in (
            ("_seed_values", _frozen(values)),
            ("_seed_count", count),
            ("_random_state", random_state),
            ("_hashbytes", hashbytes),
            ("_scheme", scheme),
            ("_shingles", checked_shingles(shingles)),
            ("_empty", _frozen(empty)),
        ):
            object.__setattr__(self, name, value)

    # ---- what it is ----

    @property
    def num_seeds(self) -> int:
        """The number of components of a fingerprint."""
        return len(self._seed_values)

    @property
    def seeds(self) -> int:
        """The number of components of a fingerprint; the same as `num_seeds`."""
        return len(self._seed_values)

    @property
    def seed_values(self) -> Array:
        """The seeds, uint32, shape ``(num_seeds,)``, read-only."""
        return self._seed_values

    @property
    def random_state(self) -> int | None:
        """The number that the seeds were drawn from, if they were."""
        return self._random_state

    @property
    def hashbytes(self) -> int:
        """Bytes per component: 4 or 8."""
        return self._hashbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of a fingerprint: uint32 or uint64."""
        dtype: np.dtype[Any] = self._empty.dtype
        return dtype

    @property
    def scheme(self) -> str:
        """The name of the scheme."""
        return self._scheme

    @property
    def shingles(self) -> Shingles:
        """How texts become sets of shingles."""
        return self._shingles

    @property
    def char_ngram(self) -> int:
        """Units per shingle: ``shingles.n``."""
        return self._shingles.n

    @property
    def empty(self) -> Array:
        """The fingerprint of a text without shingles, read-only: similar to nothing, neutral in `merge`."""
        return self._empty

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a MinHasher is immutable; make a new one instead of setting {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a MinHasher is immutable; {name} cannot be deleted")

    def _identity(self) -> tuple[Any, ...]:
        return self._scheme, self._hashbytes, self._shingles, self._seed_values.tobytes()

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, MinHasher) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        drawn = self._seed_count is not None and self._random_state is not None
        seeds = f"{self._seed_count}, random_state={self._random_state}" if drawn else f"{self._seed_values.tolist()}"
        return f"MinHasher({seeds}, hashbytes={self._hashbytes}, scheme={self._scheme!r}, shingles={self._shingles!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return what fixes the fingerprints as a dict of plain values, for `from_dict`.

        Returns
        -------
        dict
            ``scheme`` and ``version``, ``hashbytes``, ``seed_values``, ``shingles``, and ``unicode``, the Unicode
            version where texts beyond ASCII depend on it, else ``None``.
        """
        return {
            "scheme": self._scheme,
            "version": SCHEME_VERSIONS[self._scheme],
            "hashbytes": self._hashbytes,
            "seed_values": self._seed_values.tolist(),
            "shingles": self._shingles.to_dict(),
            "unicode": unicodedata.unidata_version if self._shingles.depends_on_unicode else None,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> MinHasher:
        """Make the hasher that `to_dict` described; the result is equal to it.

        Raises
        ------
        ValueError
            If the scheme or its version is unknown here, or a key is missing.

        Warns
        -----
        UserWarning
            If fingerprints of texts beyond ASCII depend on the Unicode version, and this Python has another.
        """
        parts = {"scheme", "version", "hashbytes", "seed_values", "shingles", "unicode"}
        scheme, version = checks.keys("a hasher", values, parts)["scheme"], values["version"]
        if (scheme, version) not in list(SCHEME_VERSIONS.items()):
            known = ", ".join(f"{name} {number}" for name, number in SCHEME_VERSIONS.items())
            raise ValueError(f"scheme {scheme} version {version} is unknown to this release, which has {known}")
        shingles = Shingles.from_dict(values["shingles"])
        stored = values["unicode"]
        if stored is not None and stored != unicodedata.unidata_version:
            warnings.warn(
                f"made under Unicode {stored}, this Python has {unicodedata.unidata_version}: "
                "fingerprints of texts beyond ASCII may differ",
                stacklevel=2,
            )
        return cls(values["seed_values"], hashbytes=values["hashbytes"], scheme=scheme, shingles=shingles)

    def __reduce__(self) -> tuple[Any, ...]:
        given = self._seed_count if self._seed_count is not None and self._random_state is not None else None
        seeds = self._seed_values.tolist() if given is None else given
        return _restore, (seeds, self._random_state, self._hashbytes, self._scheme, self._shingles)

    # ---- fingerprints ----

    def fingerprint(self, text: Text) -> Array:
        """Compute the fingerprint of a text.

        Parameters
        ----------
        text : str, bytes, bytearray or memoryview
            The document; ``str`` is taken as UTF-8 with ``surrogatepass``.

        Returns
        -------
        numpy.ndarray
            Shape ``(num_seeds,)``, `dtype`, read-only.

        Raises
        ------
        TypeError
            If `text` is no text.

        Examples
        --------
        >>> import lsh
        >>> lsh.MinHasher([1, 2, 3], char_ngram=5, hashbytes=4).fingerprint("The cat sat on the mat.")
        array([2491607895, 2460154684, 2162677611], dtype=uint32)
        """
        row: Array = self._rows([checks.text("text", text)], 0, False)[0]
        row.flags.writeable = False
        return row

    def fingerprints(self, texts: Iterable[Any], *, missing: str = "error", num_threads: int | None = None) -> Array:
        """Compute the fingerprint of each text.

        Parameters
        ----------
        texts : iterable of str, bytes, bytearray or memoryview
            ``n`` documents; an iterator is taken in chunks.
        missing : {"error", "empty"}
            What ``None`` is: an error, or an empty text.
        num_threads : int, optional
            Default: every core that this process may use. The result does not depend on it.

        Returns
        -------
        numpy.ndarray
            Shape ``(n, num_seeds)``, `dtype`, read-only.

        Raises
        ------
        TypeError
            If an element is no text; the message names its position.
        ValueError
            If an element is ``None`` and `missing` is ``"error"``.

        Notes
        -----
        The GIL is released while the kernels run.

        Examples
        --------
        >>> import lsh
        >>> lsh.MinHasher(100).fingerprints(["one text", b"another"]).shape
        (2, 100)
        """
        if isinstance(texts, Sized):
            rows = np.empty((len(texts), self.num_seeds), self.dtype)
            done = 0
            for first, chunk in self.chunks(texts, missing=missing, num_threads=num_threads):
                rows[first : first + len(chunk)] = chunk[: max(len(rows) - first, 0)]
                done = first + len(chunk)
            if done != len(rows):
                raise RuntimeError(f"texts changed while it was read: {len(rows)} at first, then {done}")
        else:
            parts = [chunk for _, chunk in self.chunks(texts, missing=missing, num_threads=num_threads)]
            rows = np.concatenate([np.empty((0, self.num_seeds), self.dtype), *parts])
        rows.flags.writeable = False
        return rows

    def chunks(
        self, texts: Iterable[Any], *, missing: str = "error", num_threads: int | None = None
    ) -> Iterator[tuple[int, Array]]:
        """Compute fingerprints piece by piece, for corpora whose fingerprints need not all be held.

        Parameters
        ----------
        texts, missing, num_threads
            As for `fingerprints`.

        Yields
        ------
        tuple
            The position of the first text of a chunk, and the chunk's fingerprints, shape ``(m, num_seeds)``.
        """
        checks.collection("texts", texts)
        allowed = checks.choice("missing", missing, ("error", "empty")) == "empty"
        workers = threads.number_of(num_threads)

        def compute(numbered: tuple[int, list[Any]]) -> tuple[int, Array]:
            first, chunk = numbered
            return first, self._rows(chunk, first, allowed)

        if isinstance(texts, Sized) and len(texts) <= CHUNK:
            workers = 1
        return threads.map_in_order(compute, _numbered_chunks(texts), workers)

    def _rows(self, texts: list[Any], first: int, missing: bool) -> Array:
        """Compute the fingerprints of a list of texts, of which the first is number `first`."""
        rows = np.empty((len(texts), self.num_seeds), self.dtype)
        out = rows.view(np.int32) if self._hashbytes == 4 else rows
        batch = self._shingles.batch(texts, first, missing)
        murmur3_fingerprints(batch, UNIT_CODES[self._shingles.unit], self._shingles.n, self._seed_values, out)
        return rows

    # ---- similarities ----

    def jaccard(self, a: Any, b: Any) -> float:
        """Estimate the Jaccard similarity of two documents: the fraction of equal components.

        Parameters
        ----------
        a, b : text or fingerprint
            In any mix.

        Returns
        -------
        float
            0.0 where either document has no shingles.

        Raises
        ------
        TypeError, ValueError
            If an argument is neither a text nor a fingerprint of this hasher's shape and dtype.
        """
        return float(self.similarities(self.as_fingerprint("a", a), self.as_fingerprint("b", b)))

    def similarities(self, A: Any, B: Any = None) -> Array:
        """Estimate similarities between fingerprints: one against many, many against many.

        Parameters
        ----------
        A : numpy.ndarray
            Fingerprints, shape ``(n, num_seeds)``, or one of them, shape ``(num_seeds,)``.
        B : numpy.ndarray, optional
            The same with m; default: `A`.

        Returns
        -------
        numpy.ndarray
            float64, shape ``(n, m)``, without the axis of an argument that is one fingerprint.

        Examples
        --------
        >>> import lsh
        >>> hasher = lsh.MinHasher(100)
        >>> known = hasher.fingerprints(["a text about cats", "a text about dogs"])
        >>> hasher.similarities(hasher.fingerprint("a text about cats"), known).tolist()
        [1.0, 0.45]
        """
        rows, columns = self._matrix("A", A), self._matrix("B", A if B is None else B)
        shape = rows.shape[:-1] + columns.shape[:-1]
        rows, columns = np.atleast_2d(rows), np.atleast_2d(columns)
        result = count_equal(rows, columns) / self.num_seeds
        result[self.is_empty(rows)] = 0.0
        result[:, self.is_empty(columns)] = 0.0
        similarities: Array = result.reshape(shape)
        return similarities

    def interval(self, a: Any, b: Any, confidence: float = 0.95) -> tuple[float, float]:
        """Bound the Jaccard similarity of two documents by Wilson's interval.

        Parameters
        ----------
        a, b : text or fingerprint
            In any mix.
        confidence : float, optional
            Probability that the interval covers the similarity, more than 0 and less than 1.

        Returns
        -------
        tuple of float
            Lower and upper bound; (0.0, 0.0) where either document has no shingles.

        Notes
        -----
        With p the estimate, k the number of seeds and z the normal quantile: ``(p + z^2 / 2k -+ z sqrt(p (1 - p) / k +
        z^2 / 4k^2)) / (1 + z^2 / k)`` (Wilson 1927).
        """
        if (1 + checks.fraction("confidence", confidence, zero=False)) / 2 == 1.0:
            raise ValueError(f"confidence must be less than 1, got {confidence}; only the interval (0, 1) is certain")
        first, second = self.as_fingerprint("a", a), self.as_fingerprint("b", b)
        if self.is_empty(first) or self.is_empty(second):
            return 0.0, 0.0
        from statistics import NormalDist

        k, p = self.num_seeds, float(self.similarities(first, second))
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        centre, half = p + z * z / (2 * k), z * sqrt(p * (1 - p) / k + z * z / (4 * k * k))
        low, high = (centre - half) / (1 + z * z / k), (centre + half) / (1 + z * z / k)
        return 0.0 if p == 0.0 else low, 1.0 if p == 1.0 else high

    def merge(self, a: Any, b: Any) -> Array:
        """Return the fingerprint of the union of two documents' shingle sets.

        Parameters
        ----------
        a, b : text or fingerprint
            In any mix.

        Returns
        -------
        numpy.ndarray
            Shape ``(num_seeds,)``, `dtype`, read-only.
        """
        order = np.int32 if self._hashbytes == 4 else np.uint64
        first, second = self.as_fingerprint("a", a).view(order), self.as_fingerprint("b", b).view(order)
        merged: Array = np.minimum(first, second).view(self.dtype)
        merged.flags.writeable = False
        return merged

    def is_empty(self, fingerprints: Array) -> Any:
        """Tell which fingerprints are those of texts without shingles: bool, without the last axis."""
        return (fingerprints == self._empty).all(axis=-1)

    def as_fingerprint(self, name: str, value: Any) -> Array:
        """Return the fingerprint of a text, or a fingerprint itself, checked; `name` is for messages."""
        if isinstance(value, checks.TEXT_TYPES):
            return self.fingerprint(value)
        array = self._matrix(name, value)
        if array.ndim != 1:
            raise ValueError(f"{name} must be one text or fingerprint, got an array of shape {array.shape}")
        return array

    def as_fingerprints(self, name: str, value: Any) -> Array:
        """Return fingerprints, shape ``(n, num_seeds)``, checked; `name` is for messages."""
        array = self._matrix(name, value)
        if array.ndim != 2:
            raise ValueError(f"{name} must be a matrix of fingerprints, got an array of shape {array.shape}")
        return array

    def _matrix(self, name: str, value: Any) -> Array:
        """Return fingerprints as a C-contiguous array of this hasher's dtype, checked."""
        if isinstance(value, checks.TEXT_TYPES):
            raise TypeError(f"{name} must be fingerprints, got {type(value).__name__}; compute them with fingerprints")
        array: Array
        try:
            array = np.asarray(value) if isinstance(value, np.ndarray) else _whole_numbers(value)
        except (TypeError, ValueError):  # rows of different lengths, or no numbers at all
            array = np.asarray(None)
        if array.dtype.kind not in "iu" and (array.dtype != object or array.ndim == 0):
            got = f"{array.dtype} ({type(value).__name__})"
            raise TypeError(f"{name} must hold {self.dtype} components, got {got}; compute them with fingerprints")
        if array.ndim not in (1, 2) or array.shape[-1] != self.num_seeds:
            raise ValueError(f"{name} must have {self.num_seeds} components per fingerprint, got shape {array.shape}")
        if array.dtype != self.dtype:
            if isinstance(value, np.ndarray):
                raise TypeError(f"{name} must hold {self.dtype} components, as this hasher makes, got {array.dtype}")
            if array.size and (array.min() < 0 or array.max() > np.iinfo(self.dtype).max):
                raise ValueError(f"{name} must hold {self.dtype} components, got values out of their range")
        return np.ascontiguousarray(array, self.dtype)


def _whole_numbers(values: Any) -> Array:
    """Return a sequence of whole numbers of any size, or of such sequences, as an array of Python's integers."""
    whole: Array = np.vectorize(index, otypes=[object])(np.array(values, dtype=object))
    return whole


def _frozen(array: Array) -> Array:
    """Return the array over memory that nobody can make writable."""
    return np.frombuffer(array.tobytes(), array.dtype)


def _restore(seeds: Any, random_state: int | None, hashbytes: int, scheme: str, shingles: Shingles) -> MinHasher:
    """Unpickle a hasher."""
    return MinHasher(seeds, random_state=random_state, hashbytes=hashbytes, scheme=scheme, shingles=shingles)


def _seed_values(seeds: Any, random_state: int | None) -> tuple[Array, int | None]:
    """Return the seeds, and their number if they were drawn."""
    if isinstance(seeds, checks.TEXT_TYPES):
        raise TypeError(f"seeds must be a number of seeds or a sequence of uint32, got {type(seeds).__name__}")
    if not hasattr(seeds, "__iter__") or getattr(seeds, "ndim", 1) == 0:
        count = checks.whole_number("seeds", seeds, 1, MOST_SEEDS)
        return np.random.RandomState(random_state).randint(0, 1_000_000, count, np.int64).astype(np.uint32), count
    values = [checks.whole_number(f"seeds[{i}]", value, 0, 2**32 - 1) for i, value in enumerate(seeds)]
    if not values:
        raise ValueError("seeds must be a number of seeds or a sequence of one or more uint32, got an empty sequence")
    if len(values) > MOST_SEEDS:
        raise ValueError(f"seeds must be at most {MOST_SEEDS} numbers, got {len(values)}")
    return np.array(values, np.uint32), None


def _numbered_chunks(texts: Iterable[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Cut an iterable into lists, each with the position of its first element."""
    iterator, first = iter(texts), 0
    while chunk := list(islice(iterator, CHUNK)):
        yield first, chunk
        first += len(chunk)
