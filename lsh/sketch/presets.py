"""Presets: published recipes of deduplication, as values and as options of `lsh.deduplicate`.

Each sets what its original sets: shingles and normalisation, components, bands, verification and clusters. A pair is
found with the same probability as in the original, but the fingerprints are not the same; `Preset.differs` lists this
and other differences. The figures are from the originals' code and papers, which `Preset.source` names.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar, get_args

from lsh.base import checks, errors
from lsh.sketch.bands import Bands
from lsh.sketch.hasher import MinHasher, checked_hasher
from lsh.sketch.planning import checked_bands
from lsh.text.shingling import Shingles
from lsh.typing import Clusters, PresetName, Verify

__all__ = ["NAMES", "Preset", "bigcode", "fineweb", "nemo", "preset"]


Own = TypeVar("Own", bound="Recipe")


class Recipe:
    """What a `Preset` and a `Rule` have in common: where they come from, and how they are written down."""

    name: str
    source: str
    differs: tuple[str, ...]
    _made: ClassVar[dict[str, Any]]  # attributes that a dict has as dicts, and how they are made of these

    @classmethod
    def _names(cls) -> list[str]:
        return [attribute.name for attribute in fields(cls)]  # type: ignore[arg-type] # each subclass is a dataclass

    def _check_origin(self) -> None:
        """Check the name, the source and the differences."""
        if not isinstance(self.differs, (list, tuple)) or not all(isinstance(what, str) for what in self.differs):
            raise errors.bad_type("differs", f"must be a tuple of str, got {self.differs!r}")
        for name in ("name", "source"):
            checks.instance(name, getattr(self, name), str, "a str")
        object.__setattr__(self, "differs", tuple(self.differs))

    def _with_origin(self, lines: list[str]) -> str:
        """Return a text: the name with some lines, the source and the differences."""
        lines = [f"{self.name}: {lines[0]}", *lines[1:]]
        lines += [f"source: {self.source}"] if self.source else []
        lines += ["differences from the original:", *(f"- {what}" for what in self.differs)] if self.differs else []
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as a dict of plain values, for `from_dict`.

        Returns
        -------
        dict
            All attributes, those that are values of the library as dicts.
        """
        values = {name: getattr(self, name) for name in self._names()}
        plain = {name: values[name].to_dict() for name in self._made}
        return values | plain | {"differs": list(self.differs)}

    @classmethod
    def from_dict(cls: type[Own], values: dict[str, Any]) -> Own:
        """Make the value that `to_dict` described.

        Parameters
        ----------
        values : dict
            What `to_dict` returned, such as from a JSON file.

        Returns
        -------
        Preset or Rule
            Equal to the one that was described.

        Raises
        ------
        TypeError, ValueError
            If a key is missing or unknown, or a value is bad.

        Examples
        --------
        >>> from lsh import presets
        >>> presets.Preset.from_dict(presets.nemo.to_dict()) == presets.nemo
        True
        >>> presets.Rule.from_dict(presets.rule("palm").to_dict()) == presets.rule("palm")
        True
        """
        values = checks.keys(f"a {cls.__name__.lower()}", values, set(cls._names()))
        return cls(**values | {name: make(values[name]) for name, make in cls._made.items()})


@dataclass(frozen=True)
class Preset(Recipe):
    """A published recipe. Immutable; printed, it shows its settings and the differences from the original.

    Attributes
    ----------
    name : str
        Its name for `preset` and on the command line.
    hasher : MinHasher
        The hasher of fingerprints and shingles.
    bands : Bands
        The bands.
    threshold : float
        The similarity that the original aims at. Without verification it has no effect on the result.
    verify : {"exact", "sketch", None}
        How candidate pairs are verified, as in `lsh.deduplicate`.
    clusters : {"representative", "components"}
        How duplicates are grouped, as in `lsh.deduplicate`.
    source : str
        Code and papers of the original.
    differs : tuple of str
        Differences from the original, one or two sentences each.

    Raises
    ------
    TypeError, ValueError
        If an attribute has a wrong type or value, or the bands need more components than the hasher has.

    Examples
    --------
    >>> import lsh
    >>> from lsh import presets
    >>> presets.fineweb.bands, presets.fineweb.shingles.n, presets.fineweb.shingles.unit
    (Bands(14, 8), 5, 'word')
    >>> presets.Preset("own", lsh.MinHasher(100, char_ngram=5), lsh.Bands(20, 5), 0.8, "exact", "representative")
    Preset(name='own', hasher=MinHasher(100, ...), bands=Bands(20, 5), threshold=0.8, verify='exact', ...)
    """

    name: str
    hasher: MinHasher
    bands: Bands
    threshold: float
    verify: Verify
    clusters: Clusters
    source: str = ""
    differs: tuple[str, ...] = ()
    _made: ClassVar = {"hasher": MinHasher.from_dict, "bands": Bands.from_dict}

    def __post_init__(self) -> None:
        hasher = checked_hasher(self.hasher)
        self._check_origin()
        checked = {
            "bands": checked_bands(self.bands, hasher.num_seeds),
            "threshold": checks.fraction("threshold", self.threshold, zero=False),
            "verify": checks.choice("verify", self.verify, get_args(Verify)),
            "clusters": checks.choice("clusters", self.clusters, get_args(Clusters)),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "__doc__", str(self))

    @property
    def shingles(self) -> Shingles:
        """How texts become sets of shingles."""
        return self.hasher.shingles

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments for `lsh.deduplicate`; `lsh.find_pairs` takes all of them but ``clusters``.

        Returns
        -------
        dict
            ``threshold``, ``hasher``, ``bands``, ``verify`` and ``clusters``; a new one at each call.

        Examples
        --------
        >>> import lsh
        >>> from lsh import presets
        >>> a = "The ferry to the islands sails again on Monday morning, after two days of storm."
        >>> lsh.deduplicate([a, "Rain.", a.upper()], **presets.fineweb.options())
        <Deduplication: 3 documents, 2 kept, 1 removed>
        """
        return {name: getattr(self, name) for name in ("threshold", "hasher", "bands", "verify", "clusters")}

    def __str__(self) -> str:
        hasher = self.hasher
        verified = "not verified" if self.verify is None else f"verified by {self.verify!r}"
        lines = [
            f"{self.bands.num_bands} bands of {self.bands.band_width} components, {self.shingles!r}",
            f"{hasher.num_seeds} components of {8 * hasher.hashbytes} bits, scheme {hasher.scheme}",
            f"aims at similarity {self.threshold:g}, {verified}, clusters={self.clusters!r}",
        ]
        return self._with_origin(lines)


_OTHER_HASHES = (
    "Fingerprints differ. The original computes one hash of a shingle ({hash}) and maps it to each component by a "
    "random multiplication and addition; here each component has a hash of its own. A pair is found with the same "
    "probability, as far as the maps of the original are independent."
)
_WHICH_IS_KEPT = "The first document of a cluster is kept; the original keeps an arbitrary one."

#: FineWeb, as datatrove deduplicates it.
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
        "Digits and accents are kept. The original replaces each run of digits by 0 and drops accents, so that it "
        "merges pages that differ only in numbers.",
        "A word is a maximal run of letters, digits and underscores; the original uses a tokenizer for English.",
        "Punctuation is the Unicode categories P*; the original has a list of characters. Its list includes some "
        "symbols, such as + and $: they separate words here, and the original joins the words around them.",
        "A text of one to four words is one shingle, so that equal ones are merged; the original gives it no shingle "
        "and keeps it.",
        _OTHER_HASHES.format(hash="64 bits of SHA-1"),
        _WHICH_IS_KEPT,
        "The original deduplicates each crawl separately; pass one crawl at a time.",
    ),
)

#: The Stack, by BigCode.
bigcode = Preset(
    "bigcode",
    MinHasher(256, hashbytes=4, scheme="murmur3", shingles=Shingles(5, unit="word")),
    Bands(25, 10),
    threshold=0.7,
    verify=None,
    clusters="components",
    source="bigcode-project/bigcode-dataset, near_deduplication/minhash_deduplication.py",
    differs=(
        "Letters beyond ASCII are part of words; in the original they separate words.",
        "In the original two separators in a row have an empty word between them, so that indentation and operators "
        "are part of the shingles; here they are not.",
        "A text of one to four words is one shingle, and a text without words is kept. The original treats all files "
        "of fewer than five words, including empty ones, as copies of each other.",
        _OTHER_HASHES.format(hash="32 bits of SHA-1"),
    ),
)

#: The fuzzy deduplication of NeMo Curator.
nemo = Preset(
    "nemo",
    MinHasher(260, hashbytes=4, scheme="murmur3", shingles=Shingles(24, unit="char")),
    Bands(20, 13),
    threshold=0.8,
    verify=None,
    clusters="components",
    source="NVIDIA-NeMo/Curator, stages/deduplication/fuzzy, and its pull request 498",
    differs=(
        "Empty texts are kept; the original treats them as copies of each other.",
        _OTHER_HASHES.format(hash="32 bits of MurmurHash3"),
        _WHICH_IS_KEPT,
    ),
)

_PRESETS: dict[PresetName, Preset] = {"fineweb": fineweb, "bigcode": bigcode, "nemo": nemo}
#: The names of the presets.
NAMES: tuple[PresetName, ...] = get_args(PresetName)


def preset(name: PresetName) -> Preset:
    """Return the preset of a name.

    Parameters
    ----------
    name : {"fineweb", "bigcode", "nemo"}
        Its name.

    Returns
    -------
    Preset
        The one of this module.

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
    return _PRESETS[checks.choice("preset", name, NAMES)]
