"""What a `lsh.Deduplication` says, in plain values."""

import numpy


def removed_of(result) -> dict[int, tuple[int, float, bool]]:
    """The witness of each document; the positions of old documents follow those of the new ones."""
    removed = result.removed
    kept = removed["kept"]
    if "side" in removed.dtype.names:
        kept = numpy.where(removed["side"] == "old", kept + len(result.keep), kept)
    columns = (removed["document"], kept, removed["similarity"], removed["identical"])
    return {d: (k, s, i) for d, k, s, i in zip(*(column.tolist() for column in columns))}


def near_of(result) -> list[tuple[frozenset[int], float]]:
    near = result.near
    others = near["j"]
    if "side" in near.dtype.names:
        others = numpy.where(near["side"] == "old", others + len(result.keep), others)
    pairs = [frozenset(pair) for pair in zip(near["i"].tolist(), others.tolist())]
    return sorted(zip(pairs, near["similarity"].tolist()), key=lambda pair: (-pair[1], sorted(pair[0])))
