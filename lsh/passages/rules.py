"""Published rules of decontamination, as values and as options of `lsh.find_contained`: `rule`.

Each says when the original counts a text as one that contains an item: the shingles, and how many of them, or which
share, both have. What the original does then, such as to cut or to drop, is for the caller. `Rule.source` names the
papers and the code, and `Rule.differs` lists the differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from lsh.base import checks
from lsh.passages.contained import Containing
from lsh.sketch.presets import Recipe
from lsh.text.shingling import Shingles
from lsh.typing import RuleName

__all__ = ["RULES", "Rule", "rule"]


@dataclass(frozen=True)
class Rule(Recipe):
    """A published rule for when a text contains an item. Immutable; printed, it shows how the original differs.

    Attributes
    ----------
    name : str
        Its name for `rule` and on the command line.
    shingles : Shingles
        The shingles.
    threshold : float
        The least containment, as in `lsh.find_contained`. Not used with `min_shared`.
    min_shared : int or None
        The least number of shared shingles, in place of a containment.
    window : float
        The length of the longest window, as a multiple of the item's length; ``math.inf``: the whole text.
    source : str
        Papers and code of the original.
    differs : tuple of str
        Differences from the original, one or two sentences each.

    Raises
    ------
    TypeError, ValueError
        If an attribute has a wrong type or value.

    Examples
    --------
    >>> from lsh import presets
    >>> gpt3 = presets.rule("gpt3")
    >>> gpt3.shingles.n, gpt3.shingles.unit, gpt3.min_shared
    (13, 'word', 1)
    """

    name: str
    shingles: Shingles
    threshold: float = 0.8
    min_shared: int | None = None
    window: float = 2.0
    source: str = ""
    differs: tuple[str, ...] = ()
    _made: ClassVar = {"shingles": Shingles.from_dict}

    def __post_init__(self) -> None:
        checks.instance("shingles", self.shingles, Shingles, "a Shingles", '; use lsh.Shingles(n, unit="word")')
        checked = Containing(self.threshold, self.shingles, self.window, self.min_shared)
        self._check_origin()
        for name in ("threshold", "min_shared", "window"):
            object.__setattr__(self, name, getattr(checked, name))

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments for `lsh.find_contained`.

        Returns
        -------
        dict
            ``threshold``, ``shingles``, ``min_shared`` and ``window``; a new one at each call.

        Examples
        --------
        >>> import lsh
        >>> from lsh import presets
        >>> items = ["Which metal is liquid at room temperature and was used in old thermometers for air and water?"]
        >>> page = "A quiz: which metal is liquid at room temperature and was used in old thermometers? Mercury."
        >>> lsh.find_contained(items, [page], **presets.rule("deepseekmath").options())
        <Contained: 1 of 1 item in 1 of 1 text>
        """
        return {name: getattr(self, name) for name in ("threshold", "shingles", "min_shared", "window")}

    def __str__(self) -> str:
        least = f"a containment of {self.threshold:g} or more"
        if self.min_shared is not None:
            least = f"{self.min_shared} or more shared shingles"
        window = "the whole text" if math.isinf(self.window) else f"windows of up to {self.window:g} times the length"
        return self._with_origin([f"{least}, {self.shingles!r}", window])


def _words(n: int, **normalisation: Any) -> Shingles:
    return Shingles(n, "word", **{"lowercase": True, "strip_punctuation": True, **normalisation})


_WHAT_IS_SHORTER = "Items of fewer than {n} words are skipped, and listed in `skipped`; the original {does}."
_ALL_TEXTS = (
    "A single text must have the share. The original counts the 8-grams that any of the training documents has, so an "
    "item whose parts are in several documents is contaminated there, and not found here."
)

_ALL = (
    Rule(
        "gpt3",
        _words(13),
        min_shared=1,
        source="Brown and others 2020, Language Models are Few-Shot Learners (arXiv 2005.14165), appendix C",
        differs=(
            "The original ignores 13-grams that more than 10 training documents have; pass `max_share` for that.",
            "The original cuts 200 characters on each side of a 13-gram, too, drops what is left if it has fewer than "
            "200 characters, and drops documents that are cut into more than 10 pieces.",
            "A word is a maximal run of letters, digits and underscores; in the original white space separates words.",
            "Items of fewer than 13 words are skipped, and listed in `skipped`.",
        ),
    ),
    Rule(
        "palm",
        _words(8),
        threshold=0.7,
        window=math.inf,
        source="Chowdhery and others 2022, PaLM: Scaling Language Modeling with Pathways (arXiv 2204.02311), section 8",
        differs=(
            _ALL_TEXTS,
            "The original sorts the items of a test set into contaminated and clean ones, and removes nothing.",
            "Case and punctuation are ignored here; the paper does not say how it compares 8-grams.",
        ),
    ),
    Rule(
        "gpt4",
        Shingles(50, "char", strip_punctuation=True, collapse_whitespace=True),
        min_shared=1,
        source="OpenAI 2023, GPT-4 Technical Report (arXiv 2303.08774), appendix C",
        differs=(
            "All runs of 50 characters of an item are looked for; the original draws three at random.",
            "The original removes all spaces and symbols. Here runs of white space become one space, and symbols such "
            "as + and $ stay.",
            _WHAT_IS_SHORTER.format(n=50, does="looks for them as a whole").replace("words", "characters"),
            "The original measures contamination, and removes nothing.",
        ),
    ),
    Rule(
        "deepseekmath",
        _words(10),
        min_shared=1,
        source="Shao and others 2024, DeepSeekMath (arXiv 2402.03300), section 2.1",
        differs=(
            _WHAT_IS_SHORTER.format(n=10, does="looks for those of 3 to 9 words as a whole"),
            "Case and punctuation are ignored here; the paper does not say how it compares 10-grams.",
        ),
    ),
    Rule(
        "tulu3",
        _words(8),
        threshold=0.5,
        window=math.inf,
        source="Lambert and others 2024, Tulu 3 (arXiv 2411.15124); allenai/open-instruct, decontamination/search.py",
        differs=(
            "The share is one of shingles. The original counts the words of an item that lie in an 8-gram that the "
            "document has, and wants more than half of them.",
            "A word is a maximal run of letters, digits and underscores; the original uses spaCy, where a punctuation "
            "mark is a word.",
            "The original compares prompts of a training set, not whole documents.",
        ),
    ),
    Rule(
        "datatrove",
        _words(12, normalize="NFC"),
        min_shared=1,
        source="huggingface/datatrove, pipeline/decont/n_grams.py and utils/text.py",
        differs=(
            "The original looks for the answer, and for 12-grams that have parts of both the question and the answer. "
            "Make such an item of each question: its last 11 words and the answer.",
            "Digits and accents are kept. The original replaces each run of digits by 0 and drops accents.",
            "A word is a maximal run of letters, digits and underscores; the original uses a tokenizer for English.",
            "12-grams are compared byte for byte; the original compares 64-bit hashes.",
        ),
    ),
    Rule(
        "openr1",
        Shingles(8, "word", lowercase=True),
        min_shared=1,
        source="huggingface/open-r1, scripts/decontaminate.py, after Muennighoff and others 2025 (arXiv 2501.19393)",
        differs=(
            "A word is a maximal run of letters, digits and underscores. In the original white space separates words, "
            "and punctuation marks are parts of them, so that a changed comma makes another 8-gram.",
            "Items of fewer than 8 words are skipped here, and listed in `skipped`.",
        ),
    ),
)
_RULES = {one.name: one for one in _ALL}
#: The names of the rules.
RULES: tuple[RuleName, ...] = get_args(RuleName)


def rule(name: RuleName) -> Rule:
    """Return the published rule of a name, for `lsh.find_contained`.

    Parameters
    ----------
    name : {"gpt3", "palm", "gpt4", "deepseekmath", "tulu3", "datatrove", "openr1"}
        Its name.

    Returns
    -------
    Rule
        The one of this name.

    Raises
    ------
    ValueError
        If there is no such rule; the message lists the names.

    Examples
    --------
    >>> from lsh import presets
    >>> print(presets.rule("palm"))
    palm: a containment of 0.7 or more, Shingles(8, unit='word', lowercase=True, strip_punctuation=True)
    the whole text
    source: Chowdhery and others 2022, ...
    """
    return _RULES[checks.choice("rule", name, RULES)]
