"""Fingerprints of texts: `MinHasher` defines them, and the compiled modules compute them.

A fingerprint has one component for each seed: the minimum of that seed's hash over the shingles of a text. Two
fingerprints agree in a component with a probability equal to the Jaccard similarity of the two shingle sets (Broder
1997), so the fraction of equal components is an unbiased estimate of it.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from lsh._minhash import SCHEME_CODES, UNIT_CODES, Fingerprinter, count_equal
from lsh._minhash import simd_level as _simd_level
from lsh.base import checks, errors, threads
from lsh.sketch.rows import CONFIDENCE, one_fingerprint, one_or_many
from lsh.sketch.rows import wilson_interval as wilson_interval
from lsh.sketch.seeds import MAX_FSS_SEEDS as MAX_FSS_SEEDS
from lsh.sketch.seeds import fss_seed, least_random_state, murmur3_seeds
from lsh.text.batch import Batch
from lsh.text.collections import allows_missing, extents, pieces
from lsh.text.shingling import Shingles, ascii_flags, checked_shingles, normalizer
from lsh.typing import Array, Fingerprint, Fingerprints, HashBytes, Missing, Piece, Scheme, Text, Texts

__all__ = ["MinHasher"]

SCHEME_VERSIONS: dict[Scheme, int] = {"murmur3": 1, "fss": 1}
STREAM_BATCH = 512  # texts in a batch of a stream
MAX_BATCH = 8192  # texts in a batch of a collection

# By kind of fingerprint: the bytes of text in a batch for a thread, which take about half a millisecond.
_BATCH_BYTES = {"murmur3_32": 1 << 15, "murmur3_64": 1 << 13, "fss": 1 << 18}

# By kind of fingerprint: the dtype of its components, and the type as which they are compared for the minimum.
_DTYPES: dict[str, tuple[type[np.uint32 | np.uint64], type[np.int32 | np.uint32 | np.uint64]]] = {
    "murmur3_32": (np.uint32, np.int32),
    "murmur3_64": (np.uint64, np.uint64),
    "fss": (np.uint32, np.uint32),
}


@final
class MinHasher:
    """Computes and compares fingerprints. Immutable, and safe to share between threads.

    A fingerprint is an array of `num_seeds` components. The fraction of equal components of two fingerprints estimates
    the Jaccard similarity of the shingle sets of the two texts.

    Parameters
    ----------
    seeds : int or sequence of int
        The number of components, or, for scheme ``"murmur3"``, the seeds themselves, each a uint32.
    char_ngram : int, optional
        Bytes per shingle: short for ``shingles=Shingles(char_ngram, unit="byte")``. Default 8 if `shingles` is not
        given.
    random_state : int or None, optional
        If `seeds` is a number, the seeds are ``numpy.random.RandomState(random_state).randint(0, 1e6, seeds)``. Scheme
        ``"fss"`` has one seed, which is `random_state` itself, a uint32. With the default, 0, all processes use the
        same seeds; with ``None`` new ones are drawn each time. Not used if `seeds` is a sequence.
    hashbytes : {8, 4}, optional
        Bytes per component of scheme ``"murmur3"``. Default 8. An error with ``"fss"``, whose components have 4 bytes.
    scheme : {"murmur3", "fss"}, optional
        How components are computed; see Notes.
    shingles : Shingles, optional
        How a text becomes a set of shingles. Default: ``Shingles(8, unit="byte")``.

    Raises
    ------
    TypeError, ValueError
        If a parameter has a wrong type or is out of range, or both `char_ngram` and `shingles` are given.

    Notes
    -----
    Scheme ``"murmur3"``, version 1: component i is the minimum of MurmurHash3 with seed i over all shingles. With
    ``hashbytes=8`` the hash is the first half of x64_128; with ``hashbytes=4`` it is x86_32, compared as int32 and
    returned as uint32. The fingerprints are those of mattilyra/LSH, except where a component there has the value with
    which that library starts the minimum, as in very short texts.

    Scheme ``"fss"``, version 1, is based on Fast Similarity Sketching (Dahlgaard, Knudsen and Thorup 2017). Each
    shingle is hashed once, by MurmurHash3_x86_128, and the hash assigns it to one component. Components to which no
    shingle is assigned are filled by a second rule, a pseudo-random permutation of the components for each shingle.
    This is many times faster, the time hardly depends on the number of components (1 to 4,096), and the variance on
    short texts is about half. ``docs/schemes.md`` has the definition.

    The standard error of an estimated similarity J is ``sqrt(J (1 - J) / num_seeds)``; with ``"fss"`` it is at most
    that.

    MinHasher cannot be subclassed: `Cache`, `deduplicate` and `find_pairs` call the compiled code directly and would
    not call methods of a subclass. Use a class that holds a MinHasher.

    Two hashers are equal if they compute the same fingerprint for every text, whichever way their seeds were given.

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

    __slots__ = ("_empty", "_fingerprinter", "_kind", "_seed_values", "_shingles", "_transform")
    _empty: Array
    _fingerprinter: Fingerprinter
    _kind: str
    _seed_values: NDArray[np.uint32]
    _shingles: Shingles
    _transform: Callable[[str | bytes], str | bytes] | None

    def __init__(
        self,
        seeds: int | Iterable[int],
        char_ngram: int | None = None,
        random_state: int | None = 0,
        hashbytes: HashBytes | None = None,
        *,
        scheme: Scheme = "murmur3",
        shingles: Shingles | None = None,
    ) -> None:
        if char_ngram is not None:
            if shingles is not None:
                raise ValueError("char_ngram and shingles cannot be combined; give one of them")
            shingles = Shingles(checks.whole_number("char_ngram", char_ngram, 1), unit="byte")
        shingles = Shingles(8, unit="byte") if shingles is None else checked_shingles(shingles)
        kind = _kind(scheme, hashbytes)
        if random_state is not None:
            random_state = checks.whole_number("random_state", random_state, 0, 2**32 - 1)
        if kind == "fss":
            values, components = fss_seed(seeds, random_state)
        else:
            values = murmur3_seeds(seeds, random_state)
            components = len(values)
        dtype, order = _DTYPES[kind]
        empty = np.full(components, np.iinfo(order).max, dtype)
        code, unit, flags = SCHEME_CODES[kind], UNIT_CODES[shingles.unit], ascii_flags(shingles)
        for name, value in (
            ("_seed_values", _frozen(values)),
            ("_kind", kind),
            ("_shingles", shingles),
            ("_transform", normalizer(shingles)),
            ("_fingerprinter", Fingerprinter(code, unit, shingles.n, values, components, flags)),
            ("_empty", _frozen(empty)),
        ):
            object.__setattr__(self, name, value)

    def __init_subclass__(cls) -> None:
        raise TypeError(
            f"MinHasher cannot be subclassed, got the subclass {cls.__name__}; let the class hold a MinHasher instead"
        )

    # ---- what it is ----

    @property
    def num_seeds(self) -> int:
        """The number of components of a fingerprint."""
        return len(self._empty)

    seeds = num_seeds  # the name of the parameter

    @property
    def seed_values(self) -> NDArray[np.uint32]:
        """The seeds: uint32, shape ``(num_seeds,)``, or ``(1,)`` for scheme ``"fss"``; read-only."""
        return self._seed_values

    @property
    def random_state(self) -> int | None:
        """The random state from which the seeds are drawn; ``None`` for murmur3 if none below 1,000 draws them."""
        return int(self._seed_values[0]) if self._kind == "fss" else least_random_state(self._seed_values.tobytes())

    @property
    def hashbytes(self) -> HashBytes:
        """Bytes per component: 4 or 8."""
        return 4 if self._empty.itemsize == 4 else 8

    @property
    def dtype(self) -> np.dtype[np.uint32 | np.uint64]:
        """The dtype of a fingerprint: uint32 or uint64."""
        return self._empty.dtype

    @property
    def scheme(self) -> Scheme:
        """The name of the scheme."""
        return "fss" if self._kind == "fss" else "murmur3"

    @property
    def shingles(self) -> Shingles:
        """How a text becomes a set of shingles."""
        return self._shingles

    @property
    def char_ngram(self) -> int:
        """Units per shingle: ``shingles.n``."""
        return self._shingles.n

    @property
    def empty(self) -> Array:
        """The fingerprint of a text without shingles, read-only: similar to no fingerprint, and `merge` ignores it."""
        return self._empty

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a MinHasher is immutable; make a new one instead of setting {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a MinHasher is immutable; {name} cannot be deleted")

    def _identity(self) -> tuple[Any, ...]:
        return self._kind, self.num_seeds, self._shingles, self._seed_values.tobytes()

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, MinHasher) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        seeds, state = self.num_seeds, self.random_state
        given = [f"{self._seed_values.tolist()}" if state is None else f"{seeds}, random_state={state}"]
        given += [f"hashbytes={self.hashbytes}"] if self._kind != "fss" else []
        return f"MinHasher({', '.join(given)}, scheme={self.scheme!r}, shingles={self._shingles!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return what defines the fingerprints as a dict of plain values, which `from_dict` reads.

        Returns
        -------
        dict
            ``scheme`` and its ``version``, ``hashbytes``, ``num_seeds``, ``seed_values``, ``shingles``, and
            ``unicode``: the Unicode version of Python if fingerprints of texts beyond ASCII depend on it, else
            ``None``.
        """
        return {
            "scheme": self.scheme,
            "version": SCHEME_VERSIONS[self.scheme],
            "hashbytes": self.hashbytes,
            "num_seeds": self.num_seeds,
            "seed_values": self._seed_values.tolist(),
            "shingles": self._shingles.to_dict(),
            "unicode": unicodedata.unidata_version if self._shingles.depends_on_unicode else None,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> MinHasher:
        """Make a hasher from what `to_dict` returned.

        Parameters
        ----------
        values : dict
            What `to_dict` returned, such as from a JSON file.

        Returns
        -------
        MinHasher
            Equal to the one that was described.

        Raises
        ------
        TypeError, ValueError
            If this release does not know the scheme or its version, a key is missing, or a value has a wrong type.

        Warns
        -----
        UserWarning
            If fingerprints of texts beyond ASCII depend on the Unicode version, and that of this Python differs.
        """
        parts = {"scheme", "version", "hashbytes", "num_seeds", "seed_values", "shingles", "unicode"}
        scheme, version = checks.keys("a hasher", values, parts)["scheme"], values["version"]
        if (scheme, version) not in list(SCHEME_VERSIONS.items()):  # a list, because the values may be unhashable
            known = ", ".join(f"{name} {number}" for name, number in SCHEME_VERSIONS.items())
            raise ValueError(f"scheme {scheme} version {version} is unknown to this release, which knows {known}")
        shingles = Shingles.from_dict(values["shingles"])
        stored = values["unicode"]
        if stored is not None:
            checks.instance("unicode", stored, str, "a str or None")
        if stored not in (None, unicodedata.unidata_version):
            warnings.warn(
                f"this hasher was stored under Unicode {stored}, this Python has {unicodedata.unidata_version}: "
                "fingerprints of texts beyond ASCII may differ",
                stacklevel=2,
            )
        seeds = values["seed_values"]
        if scheme == "fss":
            if not isinstance(seeds, list) or len(seeds) != 1:
                raise errors.bad_value("seed_values", f"must be a list of one seed for 'fss', got {seeds!r}")
            hasher = cls(values["num_seeds"], random_state=seeds[0], scheme=scheme, shingles=shingles)
        else:
            hasher = cls(seeds, hashbytes=values["hashbytes"], scheme=scheme, shingles=shingles)
        for name in ("num_seeds", "hashbytes"):
            if values[name] != getattr(hasher, name):
                raise errors.bad_value(name, f"must be {getattr(hasher, name)} with these seeds, got {values[name]!r}")
        return hasher

    def __reduce__(self) -> tuple[Any, ...]:
        fss = self._kind == "fss"
        seeds = self.num_seeds if fss else self._seed_values.tolist()
        random_state = int(self._seed_values[0]) if fss else 0
        width = None if fss else self.hashbytes
        return partial(MinHasher, seeds, None, random_state, width, scheme=self.scheme, shingles=self._shingles), ()

    # ---- fingerprints ----

    def fingerprint(self, text: Text) -> Array:
        """Compute the fingerprint of a text.

        Parameters
        ----------
        text : str, bytes, bytearray or memoryview
            The document; a ``str`` is encoded as UTF-8 with ``surrogatepass``.

        Returns
        -------
        numpy.ndarray
            Shape ``(num_seeds,)``, `dtype`, read-only.

        Raises
        ------
        TypeError
            If `text` has another type.

        Examples
        --------
        >>> import lsh
        >>> lsh.MinHasher([1, 2, 3], char_ngram=5, hashbytes=4).fingerprint("The cat sat on the mat.")
        array([2491607895, 2460154684, 2162677611], dtype=uint32)
        """
        return self._fingerprinter.one(text, self._transform)

    def fingerprints(self, texts: Texts, *, missing: Missing = "error", num_threads: int | None = None) -> Array:
        """Compute the fingerprint of each text.

        Parameters
        ----------
        texts : iterable of str, bytes, bytearray or memoryview, numpy array, or Arrow column
            ``n`` documents. A numpy array has one dimension and dtype ``S``, ``U``, ``O`` or ``StringDType``. An Arrow
            column is any object with the PyCapsule interface (from pyarrow, polars, pandas, duckdb, ...) that holds
            strings or bytes, plain or dictionary-encoded; it is read without a copy. Iterators and streams are read in
            chunks. An iterable may also yield such columns, for instance the record batches of a Parquet file.
        missing : {"error", "empty"}, optional
            What to do with ``None`` or a null: raise a ValueError, or treat it as an empty text.
        num_threads : int, optional
            Number of threads. Default: one for each core that this process may use. Fewer are used where the system
            does not start so many. The result does not depend on it.

        Returns
        -------
        numpy.ndarray
            Shape ``(n, num_seeds)``, `dtype`, read-only.

        Raises
        ------
        TypeError
            If an element is not a text (the message names its position), a column has another type, or a table with
            more than one column is given.
        ValueError
            If an element is ``None`` and `missing` is ``"error"``, or an Arrow column is damaged; the message names the
            position.

        Notes
        -----
        The GIL is released while fingerprints are computed. A list is copied first, so other threads may change it
        meanwhile. A numpy array of dtype ``S`` is not copied and must not be changed.

        Examples
        --------
        >>> import lsh
        >>> lsh.MinHasher(100).fingerprints(["one text", b"another"]).shape
        (2, 100)
        """
        collection, allowed, workers = _checked_texts(texts, missing, num_threads)
        if isinstance(collection, Iterator):
            parts = [rows for _, rows in self._chunks(collection, allowed, workers)]
            rows = np.concatenate([np.empty((0, self.num_seeds), self.dtype), *parts])
        else:
            rows = np.empty((len(collection), self.num_seeds), self.dtype)
            self._fill(rows.view(_DTYPES[self._kind][1]), collection, allowed, workers)
        rows.flags.writeable = False
        return rows

    def chunks(
        self, texts: Texts, *, missing: Missing = "error", num_threads: int | None = None
    ) -> Iterator[tuple[int, Array]]:
        """Compute fingerprints in chunks, for corpora whose fingerprints do not all have to be in memory.

        Parameters
        ----------
        texts, missing, num_threads
            As for `fingerprints`.

        Yields
        ------
        tuple
            The position of the first text of a chunk, and the fingerprints of its m texts, shape ``(m, num_seeds)``,
            read-only.

        Raises
        ------
        TypeError, ValueError
            As for `fingerprints`, when the chunk with the wrong text is computed.
        """
        collection, allowed, workers = _checked_texts(texts, missing, num_threads)
        return self._chunks(collection if isinstance(collection, Iterator) else iter((collection,)), allowed, workers)

    def _fill(self, rows: np.ndarray[Any, Any], piece: Piece, missing: bool, workers: int) -> None:
        """Compute the fingerprints of a piece into `rows`, in batches."""

        def compute(extent: tuple[int, int]) -> None:
            start, stop = extent
            batch = Batch(piece, 0, missing, self._transform, "texts", start, stop)
            self._fingerprinter.fill(batch, rows[start:stop])

        for _ in threads.map_in_order(compute, batch_extents(self, piece, MAX_BATCH), workers):
            pass

    def _chunks(self, pieces: Iterator[Piece], missing: bool, workers: int) -> Iterator[tuple[int, Array]]:
        """Compute the fingerprints of pieces chunk by chunk, in order."""

        def compute(texts: tuple[int, Piece, int, int]) -> tuple[int, Array]:
            first, piece, start, stop = texts
            rows = batch_fingerprints(self, Batch(piece, first, missing, None, "texts", start, stop))
            rows.flags.writeable = False
            return first + start, rows

        def batches() -> Iterator[tuple[int, Piece, int, int]]:
            first = 0
            for piece in pieces:
                for start, stop in batch_extents(self, piece):
                    yield first, piece, start, stop
                first += len(piece)

        return threads.map_in_order(compute, batches(), workers)

    # ---- similarities ----

    def jaccard(self, a: Text | Fingerprint, b: Text | Fingerprint) -> float:
        """Estimate the Jaccard similarity of two documents: the fraction of equal components.

        Parameters
        ----------
        a, b : text or fingerprint
            The documents: two texts, two fingerprints, or one of each.

        Returns
        -------
        float
            The estimate; 0.0 if a document has no shingles.

        Raises
        ------
        TypeError, ValueError
            If an argument is neither a text nor a fingerprint with this hasher's shape and dtype. A set is an error,
            because it does not keep the order of the components.

        Examples
        --------
        >>> import lsh
        >>> hasher = lsh.MinHasher(100, shingles=lsh.Shingles(4))
        >>> a, b = "The cat sat on the mat.", "The red cat sat on the mat."
        >>> hasher.jaccard(a, hasher.fingerprint(b)), round(lsh.jaccard(a, b, shingles=hasher.shingles), 3)
        (0.71, 0.692)
        """
        return float(self.similarities(checked_fingerprint(self, "a", a), checked_fingerprint(self, "b", b)))

    def similarities(
        self, A: Fingerprint | Fingerprints, B: Fingerprint | Fingerprints | None = None, /
    ) -> NDArray[np.float64]:
        """Estimate similarities between fingerprints: one and many, or many and many.

        Parameters
        ----------
        A : numpy.ndarray
            Fingerprints, shape ``(n, num_seeds)``, or one of them, shape ``(num_seeds,)``.
        B : numpy.ndarray, optional
            Fingerprints, shape ``(m, num_seeds)`` or ``(num_seeds,)``. Default: `A`.

        Returns
        -------
        numpy.ndarray
            float64, shape ``(n, m)``. An argument that is one fingerprint has no axis: shape ``(n,)``, ``(m,)`` or
            ``()``.

        Raises
        ------
        TypeError, ValueError
            If the fingerprints have another dtype or number of components.

        Examples
        --------
        >>> import lsh
        >>> hasher = lsh.MinHasher(100)
        >>> known = hasher.fingerprints(["a text about cats", "a text about dogs"])
        >>> hasher.similarities(hasher.fingerprint("a text about cats"), known).tolist()
        [1.0, 0.45]
        """
        rows = one_or_many("A", A, self.num_seeds, self.dtype)
        columns = one_or_many("B", A if B is None else B, self.num_seeds, self.dtype)
        shape = rows.shape[:-1] + columns.shape[:-1]
        rows, columns = np.atleast_2d(rows), np.atleast_2d(columns)
        result: NDArray[np.float64] = count_equal(rows, columns) / self.num_seeds
        result[self.is_empty(rows)] = 0.0
        result[:, self.is_empty(columns)] = 0.0
        return result.reshape(shape)

    def interval(
        self, a: Text | Fingerprint, b: Text | Fingerprint, confidence: float = CONFIDENCE
    ) -> tuple[float, float]:
        """Return Wilson's confidence interval for the Jaccard similarity of two documents.

        Parameters
        ----------
        a, b : text or fingerprint
            The documents: two texts, two fingerprints, or one of each.
        confidence : float, optional
            Probability that the interval contains the similarity, more than 0 and less than 1. Default 0.95.

        Returns
        -------
        tuple of float
            Lower and upper bound; (0.0, 0.0) if a document has no shingles.

        Raises
        ------
        TypeError, ValueError
            If a document is wrong, as for `jaccard`, or `confidence` is out of range.

        Notes
        -----
        With p the estimate, k the number of seeds and z the normal quantile: ``(p + z^2 / 2k -+ z sqrt(p (1 - p) / k +
        z^2 / 4k^2)) / (1 + z^2 / k)`` (Wilson 1927).

        Examples
        --------
        >>> import lsh
        >>> hasher = lsh.MinHasher(100, shingles=lsh.Shingles(4))
        >>> low, high = hasher.interval("The cat sat on the mat.", "The red cat sat on the mat.")
        >>> round(low, 2), round(high, 2)
        (0.61, 0.79)
        """
        if (1 + checks.fraction("confidence", confidence, zero=False)) / 2 == 1.0:
            raise errors.bad_value("confidence", f"must be less than 1, such as 0.99, got {confidence}")
        first, second = checked_fingerprint(self, "a", a), checked_fingerprint(self, "b", b)
        if self.is_empty(first) or self.is_empty(second):
            return 0.0, 0.0
        return wilson_interval(float(self.similarities(first, second)), self.num_seeds, confidence)

    def merge(self, a: Text | Fingerprint, b: Text | Fingerprint) -> Array:
        """Return the fingerprint of the union of the shingle sets of two documents.

        Parameters
        ----------
        a, b : text or fingerprint
            The documents: two texts, two fingerprints, or one of each.

        Returns
        -------
        numpy.ndarray
            Shape ``(num_seeds,)``, `dtype`, read-only.

        Raises
        ------
        TypeError, ValueError
            If a document is wrong, as for `jaccard`.

        Examples
        --------
        >>> import lsh
        >>> hasher = lsh.MinHasher(100, shingles=lsh.Shingles(1, "word"))
        >>> both = hasher.merge("a cat", "the dog")
        >>> bool((both == hasher.fingerprint("the dog, a cat")).all())
        True
        """
        order = _DTYPES[self._kind][1]
        first, second = checked_fingerprint(self, "a", a), checked_fingerprint(self, "b", b)
        merged: Array = np.minimum(first.view(order), second.view(order)).view(self.dtype)
        merged.flags.writeable = False
        return merged

    def is_empty(self, fingerprints: Array) -> NDArray[np.bool_]:
        """Tell which fingerprints are those of texts without shingles.

        Parameters
        ----------
        fingerprints : numpy.ndarray
            Shape ``(n, num_seeds)``, or ``(num_seeds,)`` for one fingerprint; dtype `dtype`.

        Returns
        -------
        numpy.ndarray
            bool, shape ``(n,)`` or ``()``.

        Raises
        ------
        TypeError, ValueError
            If the fingerprints have another dtype or number of components.

        Examples
        --------
        >>> import lsh
        >>> hasher = lsh.MinHasher(100)
        >>> hasher.is_empty(hasher.fingerprints(["A cat sat on the mat.", ""]))
        array([False,  True])
        """
        is_array = type(fingerprints) is np.ndarray and fingerprints.dtype == self.dtype
        if not is_array or fingerprints.ndim > 2 or fingerprints.shape[-1:] != (self.num_seeds,):
            what = "an array of fingerprints"
            fingerprints = one_or_many("fingerprints", fingerprints, self.num_seeds, self.dtype, what)
        found = np.asarray(fingerprints[..., 0] == self._empty[0])
        if found.any():  # a fingerprint of shingles may have the largest value in a component
            found = np.asarray((fingerprints == self._empty).all(axis=-1))
        return found


# ---- batches ----


def simd_level() -> str:
    """Return the instruction set that the kernels use.

    It is the fastest that this CPU has, or the one that the environment variable ``LSH_SIMD`` names when `lsh` is
    imported first. Every level gives the same bits.

    Returns
    -------
    str
        ``"avx512"``, ``"avx2"``, ``"neon"`` or ``"baseline"``.
    """
    return _simd_level()


def _checked_texts(
    texts: Texts, missing: Missing, num_threads: int | None
) -> tuple[Piece | Iterator[Piece], bool, int]:
    """Return the texts as one piece or several, whether they may be missing, and the number of threads."""
    allowed, workers = allows_missing(missing), threads.number_of(num_threads)
    return pieces("texts", texts, STREAM_BATCH), allowed, workers


def batch_extents(
    hasher: MinHasher, piece: Piece, max_texts: int = STREAM_BATCH, times: int = 1
) -> Iterator[tuple[int, int]]:
    """Divide a piece into batches for threads: yield where each starts and stops.

    A batch has at most `max_texts` texts, and about `times` the bytes of `_BATCH_BYTES`.
    """
    return extents(piece, max_texts, times * _BATCH_BYTES[hasher._kind])


def batch_fingerprints(hasher: MinHasher, batch: Batch) -> Array:
    """Compute the fingerprints of a batch that has not been normalised, shape ``(n, num_seeds)``."""
    rows = np.empty((len(batch), hasher.num_seeds), _DTYPES[hasher._kind][1])
    hasher._fingerprinter.fill(Batch(batch, transform=hasher._transform), rows)
    return rows.view(hasher.dtype)


# ---- checks ----


def checked_hasher(hasher: object) -> MinHasher:
    """Return `hasher` if it is a MinHasher."""
    return checks.instance("hasher", hasher, MinHasher, "a MinHasher", "; use lsh.MinHasher(seeds)")


def checked_fingerprint(hasher: MinHasher, name: str, value: Text | Fingerprint) -> Array:
    """Return the fingerprint of a text, or a fingerprint itself, checked; `name` is its parameter."""
    if isinstance(value, checks.TEXT_TYPES):
        return hasher.fingerprint(value)
    return one_fingerprint(name, value, hasher.num_seeds, hasher.dtype, "a text or a fingerprint")


def _kind(scheme: object, hashbytes: object) -> str:
    """Return the kind of fingerprint of a scheme and a width: a key of `_DTYPES`."""
    if checks.choice("scheme", scheme, tuple(SCHEME_VERSIONS)) == "fss":
        if hashbytes is not None:
            raise errors.bad_value(
                "hashbytes", f"requires scheme 'murmur3', got {hashbytes} with scheme 'fss'; leave it out"
            )
        return "fss"
    width = 8 if hashbytes is None else checks.whole_number("hashbytes", hashbytes, 0)
    if width not in (4, 8):
        raise errors.bad_value("hashbytes", f"must be 4 or 8, got {width}")
    return f"murmur3_{8 * width}"


def _frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy of the array that cannot be made writable."""
    return np.frombuffer(array.tobytes(), array.dtype)
