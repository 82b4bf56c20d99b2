"""What a run with a plan costs, extrapolated from measurements: the result of `Plan.cost`.

benchmarks/spark/spark.py measures `lsh dedup` and `lsh.spark` on the same generated reviews of 264 bytes and stories of
1,455 bytes, with 19 bands, on two cores. What a document costs is a line through the two in the bytes of its text.
tools/check_benchmarks.py compares the numbers with the stored results; docs/scale.md says what they leave out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import log
from typing import Any

from lsh.base.budget import LEAST_BYTES, MAX_DOCUMENTS, MIN_MEMORY, size_argument
from lsh.base.wording import counted, size
from lsh.sketch.background import PairsBelow
from lsh.sketch.sketch_filter import key_bytes

MEASURED_BANDS, MEASURED_SEEDS = 19, 128
# For each document, and for each byte of its text: seconds of CPU, or bytes.
MACHINE_SECONDS = (1.5638e-6, 1.6015e-8)  # of `lsh dedup`
KEYS_SECONDS = (1.3866e-5, 6.5121e-9)  # of `lsh.spark`, where it computes and groups keys; these grow with the bands
OTHER_SECONDS = (3.0435e-6, 2.1996e-8)  # of its other stages
OTHER_SHUFFLED = (16.91, 0.8875)
KEY_SHUFFLED = 1.0149  # bytes for each byte of a key, the hash of its text and its low bits
# Of benchmarks/engine/sizes.py, in seconds: of a document for each hash of a component, and for each band; of a pair in
# each bucket that it shares.
SEED_SECONDS, BAND_SECONDS, SHARED_SECONDS = 1.4204e-9, 8.0071e-8, 1.076e-8
MANY = 10_000  # false candidates of a document
MANY_CANDIDATES = """
                  which takes much of the time: longer shingles, or a higher threshold, have fewer"""
LARGE_BUCKET = 1 << 16  # documents, as `lsh.links.linking.LIMIT`: beyond it comparisons are left out
LARGE_BUCKETS = f"""
                  in buckets of more than {LARGE_BUCKET:,} unlike documents some are not compared: less recall"""
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
            parts = " in all parts", ", and more to compare the parts with each other"
        else:
            memory, parts = f"max_memory {size_argument(self.max_memory)} or more", ("", "")
        if self.false_candidates is None:
            compared = "not counted: they may cost more than all else; plan with a sample of the texts"
        else:
            each = 2 * self.false_candidates / self.documents
            compared = f"{each:,.0f} for each document" if each >= 10 else f"{each:.2g} for each document"
            compared += (MANY_CANDIDATES if each > MANY else "") + (LARGE_BUCKETS if each > LARGE_BUCKET else "")
        return "\n".join(
            [
                f"{counted(self.documents, 'document')} of {self.text_bytes:,} bytes, {total} of text",
                f"one machine       {memory}",
                f"                  {size(self.temporary_bytes)} of temporary files{parts[0]}",
                f"                  {_hours(self.core_hours)}{parts[1]}",
                f"Spark             {_hours(self.spark_core_hours)}, {size(self.spark_shuffled_bytes)} shuffled",
                f"false candidates  {compared}",
                "extrapolated from two cores and shingles of bytes; words take up to three times as long where texts "
                "are\nshort: run a hundredth of the corpus first",
            ]
        )


def cost_of(
    documents: int, text_bytes: int, num_bands: int, num_seeds: int, low_bytes: int, false_pairs: float | None
) -> Cost:
    """Return the cost of a run.

    `low_bytes` is the size of the low bits of a document, `false_pairs` the share of all pairs that are false
    candidates, if it is known.
    """
    candidates = None if false_pairs is None else false_pairs * documents * (documents - 1) / 2
    vain = SHARED_SECONDS * (candidates or 0.0)
    more = _seeds_seconds(num_seeds) - _seeds_seconds(MEASURED_SEEDS) + (num_bands - MEASURED_BANDS) * BAND_SECONDS
    bands = num_bands / MEASURED_BANDS
    spark = _of(KEYS_SECONDS, text_bytes) * bands + _of(OTHER_SECONDS, text_bytes)
    return Cost(
        documents,
        text_bytes,
        candidates,
        max(documents * LEAST_BYTES, MIN_MEMORY) if documents <= MAX_DOCUMENTS else None,
        documents * (key_bytes(documents, low_bytes) * num_bands + num_seeds + low_bytes + CONTENT_BYTES),
        (documents * max(_of(MACHINE_SECONDS, text_bytes) + more, 0.0) + vain) / 3600,
        (documents * spark + vain) / 3600,
        round(documents * (KEY_SHUFFLED * (16 + low_bytes) * num_bands + max(_of(OTHER_SHUFFLED, text_bytes), 0.0))),
    )


def seconds_of_bands(widths: Sequence[int], num_seeds: int, documents: int, pairs: PairsBelow) -> float:
    """Return what a document costs that depends on its bands, in seconds.

    `pairs` are pairs of a corpus below the threshold, which meet in a shared bucket of each band in which they agree.
    """
    shared = 0.0  # bands in which a pair agrees
    for width, number in Counter(widths).items():
        shared += number * float(pairs.weights @ pairs.similarities**width)
    met = shared * (documents - 1) / 2
    return _seeds_seconds(num_seeds) + len(widths) * BAND_SECONDS + met * SHARED_SECONDS


def _seeds_seconds(num_seeds: int) -> float:
    """Return what the components of a document cost: scheme fss computes k log k hashes until each of k has one."""
    return num_seeds * log(num_seeds) * SEED_SECONDS


def _of(line: tuple[float, float], text_bytes: int) -> float:
    return line[0] + line[1] * text_bytes


def _hours(value: float) -> str:
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
    return f"{shown} core hours"
