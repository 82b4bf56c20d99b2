"""Why an item was not looked for, in words: for tables and reports."""

from __future__ import annotations

from typing import Any

from lsh.base.wording import counted


def in_words(parameters: dict[str, Any]) -> dict[str, str]:
    """Return the words for each reason of `Contained.skipped`; `parameters` are those of the result.

    Examples
    --------
    >>> import lsh
    >>> in_words(lsh.find_contained(["too short"], ["a text"]).parameters)["short"]
    'shorter than a shingle of 3 words'
    """
    shingles = parameters["shingles"]
    share = 100 * (parameters["max_share"] or 0.0)
    return {
        "short": f"shorter than a shingle of {counted(shingles.n, UNITS[shingles.unit])}",
        "few": f"fewer than {counted(parameters['min_shared'] or 0, 'shingle')}",
        "common": f"too few of its shingles are in at most {share:g} % of the texts",
    }


UNITS = {"char": "character", "byte": "byte", "word": "word"}
