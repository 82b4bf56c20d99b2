"""What a run with a plan costs, extrapolated from measurements: the result of `Plan.cost`.

benchmarks/spark/spark.py measures `lsh dedup` and `lsh.spark` on the same generated reviews of 264 bytes and stories of
1,455 bytes, with 19 bands, on two cores. What a document costs is a line through the two in the bytes of its text.
tools/check_benchmarks.py compares the numbers with the stored results; docs/scale.md says what they leave out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lsh.base.budget import LEAST_BYTES, MAX_DOCUMENTS, size_argument
from lsh.base.wording import counted, size

MEASURED_BANDS = 19
# For each document, and for each byte of its text: seconds of CPU, or bytes.
MACHINE_SECONDS = (2.335e-6, 1.569e-8)  # of `lsh dedup`
KEYS_SECONDS = (4.022e-6, 2.539e-8)  # of `lsh.spark`, where it computes and groups keys; these grow with the bands
OTHER_SECONDS = (2.007e-6, 4.501e-8)  # of its other stages
OTHER_SHUFFLED = (-44.27, 1.1759)
KEY_SHUFFLED = 16.06  # bytes of a document and band
CANDIDATE_SECONDS = 3.179e-8  # of a pair that shares a band, as the texts of the corpus "template" of engine.py
MANY_CANDIDATES = """
                  more than one: longer shingles, more components or a higher threshold have fewer"""
CONTENT_BYTES = 24  # of a document in temporary files, beside keys and sketch


@dataclass(frozen=True)
class Cost:
    """What a run costs on one machine and on Spark: an extrapolation, made by `Plan.cost`. It prints itself.

    Attributes
    ----------
    documents : int
        The number of documents.
    text_bytes : int
        The bytes of a text on average.
    false_candidates : float or None
        The number of pairs that are compared in vain; ``None`` if the plan has no background.
    max_memory : int or None
        The smallest `max_memory` in bytes of a run on one machine; ``None`` if one run cannot have so many documents.
    temporary_bytes : int
        The size of the temporary files of such a run.
    core_hours : float
        CPU time of a run on one machine, in hours, with the false candidates.
    spark_core_hours : float
        CPU time of a run on Spark, in hours, with the false candidates.
    spark_shuffled_bytes : int
        Bytes that Spark shuffles.
    """

    documents: int
    text_bytes: int
    false_candidates: float | None
    max_memory: int | None
    temporary_bytes: int
    core_hours: float
    spark_core_hours: float
    spark_shuffled_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as a dict.

        Returns
        -------
        dict
            Plain values.
        """
        return asdict(self)

    def __str__(self) -> str:
        total = size(self.documents * self.text_bytes)
        if self.max_memory is None:
            memory = f"not in one run, which can have {MAX_DOCUMENTS:,} documents; divide the corpus"
        else:
            memory = f"max_memory {size_argument(self.max_memory)} or more"
        if self.false_candidates is None:
            compared = "not counted: they may cost more than all else; plan with a sample of the texts"
        else:
            each = 2 * self.false_candidates / self.documents
            compared = f"{each:,.0f} for each document" if each >= 10 else f"{each:.2g} for each document"
            compared += MANY_CANDIDATES if each > 1 else ""
        return "\n".join(
            [
                f"{counted(self.documents, 'document')} of {self.text_bytes:,} bytes, {total} of text",
                f"one machine       {memory}",
                f"                  {size(self.temporary_bytes)} of temporary files",
                f"                  {_hours(self.core_hours)}",
                f"Spark             {_hours(self.spark_core_hours)}, {size(self.spark_shuffled_bytes)} shuffled",
                f"false candidates  {compared}",
                "extrapolated from two cores, 128 components and shingles of bytes; 512 components, or words, take up "
                "to\nthree times as long where texts are short: run a hundredth of the corpus first",
            ]
        )


def cost_of(documents: int, text_bytes: int, num_bands: int, num_seeds: int, false_pairs: float | None) -> Cost:
    """Return the cost of a run; `false_pairs` is the share of all pairs that are false candidates, if it is known."""
    candidates = None if false_pairs is None else false_pairs * documents * (documents - 1) / 2
    vain = CANDIDATE_SECONDS * (candidates or 0.0)
    bands = num_bands / MEASURED_BANDS
    spark = _of(KEYS_SECONDS, text_bytes) * bands + _of(OTHER_SECONDS, text_bytes)
    return Cost(
        documents,
        text_bytes,
        candidates,
        documents * LEAST_BYTES if documents <= MAX_DOCUMENTS else None,
        documents * (8 * num_bands + num_seeds + CONTENT_BYTES),
        (documents * _of(MACHINE_SECONDS, text_bytes) + vain) / 3600,
        (documents * spark + vain) / 3600,
        round(documents * (KEY_SHUFFLED * num_bands + max(_of(OTHER_SHUFFLED, text_bytes), 0.0))),
    )


def _of(line: tuple[float, float], text_bytes: int) -> float:
    return line[0] + line[1] * text_bytes


def _hours(value: float) -> str:
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
    return f"{shown} core hours"
