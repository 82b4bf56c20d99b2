"""Bands: how a fingerprint is divided for locality sensitive hashing, and which pairs are found with them.

Two documents are a candidate pair if they agree in every component of at least one band. With b bands of r components,
a pair of similarity s is found with probability ``1 - (1 - s^r)^b`` (Leskovec, Rajaraman and Ullman, Mining of Massive
Datasets, chapter 3). With bands of different widths, the probabilities of missing a pair are multiplied.
`sketch.planning` chooses bands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from lsh._minhash import band_keys
from lsh.base import checks, errors
from lsh.base.wording import counted
from lsh.typing import Array, Floats, Numbers

__all__ = ["BandError", "Bands"]

MAX_BANDS = 2**20  # bands, and components of a band: the largest number of components of a fingerprint

_GROUP = re.compile(r"\s*([0-9]{1,9})\s*[xX]\s*([0-9]{1,9})\s*")


class BandError(ValueError, AssertionError):
    """The bands do not fit the fingerprint.

    It is also an AssertionError, because mattilyra/LSH raises one.
    """


class Bands:
    """The division of a fingerprint into bands. Immutable.

    Two documents are a candidate pair if they agree in every component of at least one band.

    Parameters
    ----------
    num_bands : int, optional
        The number of bands, all of the same width; requires `width`.
    width : int, optional
        The components of each band; requires `num_bands`.
    widths : sequence of int, optional
        The components of each band, if they differ; in place of `num_bands` and `width`.

    Raises
    ------
    TypeError, ValueError
        If a number is not a whole number of 1 or more, or the parameters are not given as above.

    Notes
    -----
    The first band begins at component 0, and each band begins where the last one ends. Components after the last band
    are not used.

    Examples
    --------
    >>> import lsh
    >>> bands = lsh.Bands(20, 5)
    >>> round(bands.probability(0.8), 4)
    0.9996
    >>> lsh.Bands(widths=(7, 7, 8)).band_width
    (7, 7, 8)
    >>> print(bands)
    20 bands of 5 components, 100 in all
    similarity  0.3    0.4    0.5    0.6    0.7    0.8    0.9    1.0
    found       0.047  0.186  0.470  0.802  0.975  1.000  1.000  1.000
    half of the pairs are found at 0.509, 95 % at 0.674; (1/b)^(1/r) is 0.549
    keys take 160 bytes a document
    """

    __slots__ = ("_widths",)
    _widths: tuple[int, ...]

    def __init__(
        self, num_bands: int | None = None, width: int | None = None, *, widths: Iterable[int] | None = None
    ) -> None:
        if widths is not None:
            if num_bands is not None or width is not None:
                raise ValueError("give either num_bands and width, or widths")
            if isinstance(widths, checks.TEXT_TYPES) or not hasattr(widths, "__iter__"):
                raise errors.bad_type("widths", f"must be a sequence of whole numbers, got {type(widths).__name__}")
            values = tuple(checks.whole_number(f"widths[{i}]", value, 1, MAX_BANDS) for i, value in enumerate(widths))
            if not values:
                raise errors.bad_value("widths", "must have one element or more, got none")
        elif num_bands is None or width is None:
            raise ValueError("give num_bands and width, such as Bands(20, 5), or widths")
        else:
            number = checks.whole_number("num_bands", num_bands, 1, MAX_BANDS)
            values = (checks.whole_number("width", width, 1, MAX_BANDS),) * number
        object.__setattr__(self, "_widths", values)

    @classmethod
    def from_string(cls, text: str) -> Bands:
        """Make bands from the form that the command line uses.

        Parameters
        ----------
        text : str
            Such as ``"20x6"``, 20 bands of 6 components, or ``"2x7+14x8"``, 2 bands of 7 and 14 of 8.

        Returns
        -------
        Bands
            The bands, in the order of the text.

        Raises
        ------
        ValueError
            If the text does not have this form.

        Examples
        --------
        >>> import lsh
        >>> lsh.Bands.from_string("2x7+14x8").num_bands
        16
        """
        widths: list[int] = []
        for group in checks.instance("bands", text, str, "a str such as '20x6'").split("+"):
            match = _GROUP.fullmatch(group)
            if match is None or not 1 <= int(match[1]) <= MAX_BANDS or not 1 <= int(match[2]) <= MAX_BANDS:
                raise errors.bad_value("bands", f"must look like 20x6 or 2x7+14x8 (bands x width), got {text!r}")
            if len(widths) + int(match[1]) > MAX_BANDS:
                raise errors.bad_value("bands", f"must be at most {MAX_BANDS:,}, got more in {text[:40]!r}")
            widths += [int(match[2])] * int(match[1])
        return cls(widths=widths)

    def to_string(self) -> str:
        """Return the bands in the form that `from_string` reads.

        Returns
        -------
        str
            Such as ``"20x6"``: the widths in their order, equal neighbours counted.

        Examples
        --------
        >>> import lsh
        >>> lsh.Bands(widths=(7, 7, 8)).to_string()
        '2x7+1x8'
        """
        return "+".join(f"{len(list(same))}x{width}" for width, same in groupby(self._widths))

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of components of each band."""
        return self._widths

    @property
    def num_bands(self) -> int:
        """The number of bands."""
        return len(self._widths)

    @property
    def band_width(self) -> int | tuple[int, ...]:
        """The number of components of a band; `widths` if they differ."""
        return self._widths[0] if len(set(self._widths)) == 1 else self._widths

    @property
    def num_components(self) -> int:
        """The number of components that all bands have together."""
        return sum(self._widths)

    @property
    def bounds(self) -> NDArray[np.uintp]:
        """Band i has the components ``bounds[i]`` to ``bounds[i + 1] - 1``: uintp, shape ``(num_bands + 1,)``."""
        return np.concatenate([[0], np.cumsum(self._widths)]).astype(np.uintp)

    @overload
    def probability(self, similarity: float) -> float: ...

    @overload
    def probability(self, similarity: Numbers) -> Floats: ...

    def probability(self, similarity: float | Numbers) -> float | Floats:
        """Return the probability that a pair of this similarity agrees in at least one band.

        Parameters
        ----------
        similarity : float or array_like
            Jaccard similarity of the pair, 0 to 1, or several.

        Returns
        -------
        float or numpy.ndarray
            ``1 - prod(1 - s^r)`` over the widths r of the bands, for independent components.

        Raises
        ------
        TypeError, ValueError
            If a similarity is no number from 0 to 1.

        Examples
        --------
        >>> import lsh
        >>> lsh.Bands(20, 5).probability([0.3, 0.5, 0.8]).round(3)
        array([0.047, 0.47 , 1.   ])
        """
        s = checks.fractions("similarity", similarity)
        found = 1.0 - _missed(s, *self._counts())
        return found if s.ndim else float(found)

    def _counts(self) -> tuple[NDArray[np.int_], NDArray[np.intp]]:
        """Return the different widths, and how many bands have each."""
        return np.unique(np.array(self._widths), return_counts=True)

    def similarity_at(self, probability: float) -> float:
        """Return the similarity of pairs that agree in at least one band with this probability.

        Parameters
        ----------
        probability : float
            From 0 to 1.

        Returns
        -------
        float
            The inverse of `probability`.

        Raises
        ------
        TypeError, ValueError
            If the probability is no number from 0 to 1.

        Examples
        --------
        >>> import lsh
        >>> round(lsh.Bands(20, 5).similarity_at(0.5), 3)
        0.509
        """
        wanted, low, high = checks.fraction("probability", probability, zero=True), 0.0, 1.0
        counts = self._counts()
        for _ in range(60):  # one bit of the result each
            middle = (low + high) / 2
            found = 1.0 - _missed(np.array(middle), *counts)
            low, high = (middle, high) if found < wanted else (low, middle)
        return high

    def keys(self, fingerprints: Array) -> NDArray[np.uint64]:
        """Return the band keys of fingerprints: equal if all components of the band are equal.

        Parameters
        ----------
        fingerprints : numpy.ndarray
            Shape ``(n, k)``, uint32 or uint64, k at least `num_components`.

        Returns
        -------
        numpy.ndarray
            uint64, shape ``(num_bands, n)``: a hash of the components of each band and their positions. Different
            components have the same key with a probability of about 2^-64.

        Raises
        ------
        ValueError
            If the shape is another one.

        Examples
        --------
        >>> import lsh
        >>> keys = lsh.Bands(20, 5).keys(lsh.MinHasher(100).fingerprints(["A cat sat.", "A cat sat.", "A dog ran."]))
        >>> keys.shape, bool((keys[:, 0] == keys[:, 1]).all()), bool((keys[:, 0] == keys[:, 2]).any())
        ((20, 3), True, False)
        """
        kind = getattr(fingerprints, "dtype", None)
        if not isinstance(fingerprints, np.ndarray) or kind not in (np.uint32, np.uint64):
            got = type(fingerprints).__name__ if kind is None else f"{type(fingerprints).__name__} of {kind}"
            raise errors.bad_type(
                "fingerprints", f"must be an array of uint32 or uint64, as a MinHasher makes it, got {got}"
            )
        rows = np.asarray(fingerprints)
        if rows.ndim != 2 or rows.shape[1] < self.num_components:
            raise errors.bad_value(
                "fingerprints", f"must have shape (n, k) with k of {self.num_components} or more, got {rows.shape}"
            )
        keys = np.empty((self.num_bands, len(rows)), np.uint64)
        apart, left = divmod(rows.strides[0], rows.itemsize)
        if rows.strides[1] != rows.itemsize or apart < rows.shape[1] or left:
            rows = np.ascontiguousarray(rows)
        band_keys(rows, self.bounds, keys)
        return keys

    def to_dict(self) -> dict[str, list[int]]:
        """Return the parameters as a dict of plain values, which `from_dict` reads.

        Returns
        -------
        dict
            ``widths``, the components of each band.
        """
        return {"widths": list(self._widths)}

    @classmethod
    def from_dict(cls, values: dict[str, list[int]]) -> Bands:
        """Make bands from what `to_dict` returned.

        Parameters
        ----------
        values : dict
            What `to_dict` returned, such as from a JSON file.

        Returns
        -------
        Bands
            Equal to those that were described.

        Raises
        ------
        TypeError, ValueError
            If a key is missing or unknown, or a value is wrong.
        """
        return cls(widths=checks.keys("bands", values, {"widths"})["widths"])

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"Bands are immutable; make new ones instead of setting {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"Bands are immutable; {name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        return self._widths == other._widths if isinstance(other, Bands) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._widths)

    def __reduce__(self) -> tuple[object, ...]:
        return Bands.from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        if isinstance(self.band_width, int):
            return f"Bands({self.num_bands}, {self.band_width})"
        return f"Bands(widths={self._widths})"

    def __str__(self) -> str:
        similarities = [s / 10 for s in range(3, 11)]
        widths = self.band_width
        if isinstance(widths, int):
            shape = f" of {counted(widths, 'component')}"
            threshold = f"; (1/b)^(1/r) is {(1 / self.num_bands) ** (1 / widths):.3f}"
        else:
            shape, threshold = f", {self.to_string()} components", ""
        return "\n".join(
            [
                f"{counted(self.num_bands, 'band')}{shape}, {self.num_components} in all",
                "similarity  " + "  ".join(f"{s:<5.1f}" for s in similarities).rstrip(),
                "found       " + "  ".join(f"{self.probability(s):.3f}" for s in similarities),
                f"half of the pairs are found at {self.similarity_at(0.5):.3f}, "
                f"95 % at {self.similarity_at(0.95):.3f}{threshold}",
                f"keys take {8 * self.num_bands} bytes a document",
            ]
        )


def _missed(similarities: Floats, widths: NDArray[np.int_], numbers: NDArray[np.intp]) -> Floats:
    """Return the probabilities that pairs agree in no band; there are so many bands of each width."""
    missed = np.ones_like(similarities)
    for width, number in zip(widths, numbers):
        missed *= (1.0 - similarities**width) ** number
    return missed


def equal_bands(num_bands: object, num_seeds: int) -> Bands:
    """Return `num_bands` bands of equal width that use every component of a fingerprint."""
    number = checks.whole_number("num_bands", num_bands, 1)
    if num_seeds % number:
        divisors = [d for d in range(1, num_seeds + 1) if num_seeds % d == 0]
        near = [max(d for d in divisors if d < number), *[d for d in divisors if d > number][:1]]
        raise BandError(
            f"num_bands must divide the number of seeds ({num_seeds}), got {number}; use {' or '.join(map(str, near))}"
        )
    return Bands(number, num_seeds // number)
