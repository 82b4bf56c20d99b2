"""Presets: published recipes of deduplication, as values and as options of `lsh.deduplicate`.

Each fixes what its original did: shingles and normalisation, components, bands, verification and clusters. A pair of
one similarity is found with the same probability as there, but the fingerprints are other ones, and each preset says
what else differs. The figures are those of the originals' code and papers, which `Preset.source` names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lsh.bands import Bands
from lsh.minhash import MinHasher
from lsh.shingling import Shingles

__all__ = ["NAMES", "Preset", "bigcode", "fineweb", "nemo", "options", "preset"]


@dataclass(frozen=True)
class Preset:
    """A published recipe. Immutable; printed, it says what it fixes and what still differs.

    Attributes
    ----------
    name : str
        The name that `options` and the command line know it by.
    hasher : MinHasher
        What makes the fingerprints; `shingles` are its own.
    bands : Bands
        The bands.
    threshold : float
        The similarity that the original aims at. Where nothing is verified it decides nothing.
    verify : {"exact", "sketch", None}
        What makes a candidate pair a duplicate.
    clusters : {"representative", "components"}
        For what a document is removed.
    source : str
        Where the figures are from.
    differs : tuple of str
        What still differs from the original, a sentence or two each.

    Examples
    --------
    >>> from lsh import presets
    >>> presets.fineweb.bands, presets.fineweb.shingles.n, presets.fineweb.shingles.unit
    (Bands(14, 8), 5, 'word')
    """

    name: str
    hasher: MinHasher
    bands: Bands
    threshold: float
    verify: str | None
    clusters: str
    source: str = field(repr=False, compare=False, default="")
    differs: tuple[str, ...] = field(repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", str(self))

    @property
    def shingles(self) -> Shingles:
        """How texts become sets of shingles."""
        return self.hasher.shingles

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments for `lsh.deduplicate`, a new dict at each call."""
        return {name: getattr(self, name) for name in ("threshold", "hasher", "bands", "verify", "clusters")}

    def to_dict(self) -> dict[str, Any]:
        """Return what the preset fixes as a dict of plain values, for a report."""
        plain = {"hasher": self.hasher.to_dict(), "bands": self.bands.to_dict()}
        return {"name": self.name, **self.options(), **plain}

    def __str__(self) -> str:
        hasher = self.hasher
        verified = "not verified" if self.verify is None else f"verified by {self.verify!r}"
        return "\n".join(
            [
                f"{self.name}: {self.bands.num_bands} bands of {self.bands.band_width} components, {self.shingles!r}",
                f"{hasher.num_seeds} components of {8 * hasher.hashbytes} bits, scheme {hasher.scheme}",
                f"aims at similarity {self.threshold:g}, {verified}, clusters={self.clusters!r}",
                f"after {self.source}",
                "what still differs:",
                *(f"- {what}" for what in self.differs),
            ]
        )


_OTHER_HASHES = (
    "Fingerprints are other ones: there one hash of a shingle ({hash}) is mapped to each component by a multiplication "
    "and an addition that are drawn once, here each component has a hash of its own. A pair is found with the same "
    "probability, as far as those maps are independent."
)
_ANY_STAYS = "Of a cluster the first document stays; there it is {which}."

fineweb = Preset(
    "fineweb",
    MinHasher(
        112,
        hashbytes=8,
        scheme="murmur3",
        shingles=Shingles(5, unit="word", lowercase=True, strip_punctuation=True, normalize="NFC"),
    ),
    Bands(14, 8),
    threshold=0.75,
    verify=None,
    clusters="components",
    source="huggingface/datatrove, examples/fineweb.py and utils/text.py; Penedo and others 2024, section 3.4",
    differs=(
        "Digits and accents stay. There each run of digits becomes 0 and accents go, so that pages that differ in "
        "nothing but numbers are merged.",
        "A word is a maximal run of letters, digits and underscores; there a tokenizer for English cuts words.",
        "Punctuation is the Unicode categories P*. There it is a list of characters that has some symbols, such as + "
        "and $, which part words here and join them there.",
        "A text of one to four words is one shingle, and equal ones are merged; there it has none and stays.",
        _OTHER_HASHES.format(hash="64 bits of SHA-1"),
        _ANY_STAYS.format(which="any of them"),
        "The original runs over each crawl by itself: pass one at a time.",
    ),
)

bigcode = Preset(
    "bigcode",
    MinHasher(256, hashbytes=4, scheme="murmur3", shingles=Shingles(5, unit="word")),
    Bands(25, 10),
    threshold=0.7,
    verify=None,
    clusters="components",
    source="bigcode-project/bigcode-dataset, near_deduplication/minhash_deduplication.py",
    differs=(
        "Letters beyond ASCII belong to words; there they part words.",
        "There two separators in a row have an empty word between them, so that indentation and operators are part of "
        "the shingles; here they leave no trace.",
        "A text of one to four words is one shingle, and a text without words stays. There all files of fewer than "
        "five words, empty ones counted, are taken for copies of each other.",
        _OTHER_HASHES.format(hash="32 bits of SHA-1"),
    ),
)

nemo = Preset(
    "nemo",
    MinHasher(260, hashbytes=4, scheme="murmur3", shingles=Shingles(24, unit="char")),
    Bands(20, 13),
    threshold=0.8,
    verify=None,
    clusters="components",
    source="NVIDIA-NeMo/Curator, stages/deduplication/fuzzy, and its pull request 498",
    differs=(
        "Empty texts stay; there they are copies of each other.",
        _OTHER_HASHES.format(hash="32 bits of MurmurHash3"),
        _ANY_STAYS.format(which="an arbitrary one"),
    ),
)

_PRESETS = {one.name: one for one in (fineweb, bigcode, nemo)}
NAMES = tuple(_PRESETS)


def preset(name: str) -> Preset:
    """Return the preset of a name.

    Parameters
    ----------
    name : {"fineweb", "bigcode", "nemo"}
        Its name.

    Raises
    ------
    ValueError
        If there is no such preset; the message lists the names.

    Examples
    --------
    >>> from lsh import presets
    >>> presets.preset("bigcode") is presets.bigcode
    True
    """
    found = _PRESETS.get(name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"preset must be one of {', '.join(map(repr, NAMES))}, got {name!r}")
    return found


def options(name: str) -> dict[str, Any]:
    """Return the keyword arguments with which `lsh.deduplicate` follows a preset.

    Parameters
    ----------
    name : {"fineweb", "bigcode", "nemo"}
        The name of the preset.

    Returns
    -------
    dict
        ``threshold``, ``hasher``, ``bands``, ``verify`` and ``clusters``; a new one at each call.

    Raises
    ------
    ValueError
        If there is no such preset; the message lists the names.

    Examples
    --------
    >>> import lsh
    >>> from lsh import presets
    >>> a = "The ferry to the islands sails again on Monday morning, after two days of storm."
    >>> lsh.deduplicate([a, "Rain.", a.upper()], **presets.options("fineweb"))
    <Deduplication: 3 documents, 2 kept, 1 removed>
    """
    return preset(name).options()
