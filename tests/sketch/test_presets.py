"""The presets: each figure against the published recipe, and the normalisation.

The figures below were copied by hand from the sources that the comments name. test_values.py tests that a preset is a
value, tests/engine/test_dedup.py compares results with brute force for bands and clusters of every kind.
"""

import pytest

import lsh
from lsh import Bands, Shingles, presets

ALL = [presets.fineweb, presets.bigcode, presets.nemo]

# name: units of a shingle, unit, components, bands, rows, (1/b)^(1/r), found at .7, .8 and .9, threshold, bytes
TABLE = {
    # FineWeb: datatrove, examples/fineweb.py: n_grams=5, num_buckets=14, hashes_per_bucket=8, 64-bit hashes. The paper
    # (arXiv 2406.17557, section 3.4) aims at documents that are 75 % similar, and has .56 and .92 for .7 and .8.
    "fineweb": (5, "word", 112, 14, 8, 0.72, (0.56, 0.92, 0.9996), 0.75, 8),
    # The Stack: bigcode-dataset, near_deduplication/minhash_deduplication.py: ngram_size=5, num_perm=256,
    # threshold=0.7, 32 bits of SHA-1; 25 bands of 10 in bigcode-analysis, pull request 30, and in the blog on it.
    "bigcode": (5, "word", 256, 25, 10, 0.725, (0.51, 0.94, 1.0), 0.7, 4),
    # NeMo Curator: stages/deduplication/fuzzy: char_ngrams=24 (5 until pull request 498), num_bands=20,
    # minhashes_per_band=13, use_64_bit_hash=False; the check for false positives, at .8, is off.
    "nemo": (24, "char", 260, 20, 13, 0.79, (0.18, 0.68, 0.997), 0.8, 4),
}


def rounded(value: float, like: float) -> float:
    """A value printed with as many digits as a figure of the table."""
    return round(value, len(str(like).partition(".")[2]))


@pytest.mark.parametrize("preset", ALL, ids=presets.NAMES)
def test_the_figures_are_the_published_ones(preset):
    n, unit, seeds, bands, rows, steep, found, threshold, hashbytes = TABLE[preset.name]
    assert (preset.shingles.n, preset.shingles.unit) == (n, unit)
    assert (preset.hasher.num_seeds, preset.hasher.hashbytes, preset.hasher.scheme) == (seeds, hashbytes, "murmur3")
    assert preset.bands == Bands(bands, rows)
    assert presets.preset(preset.name) is preset
    assert preset.threshold == threshold
    assert rounded((1 / bands) ** (1 / rows), steep) == steep
    for similarity, share in zip((0.7, 0.8, 0.9), found):
        assert rounded(1 - (1 - similarity**rows) ** bands, share) == share
        assert preset.bands.probability(similarity) == pytest.approx(1 - (1 - similarity**rows) ** bands)
    # none of the three verifies, and each connects all documents of a bucket
    assert (preset.verify, preset.clusters) == (None, "components")


def test_the_normalisation_is_the_published_one():
    """FineWeb lower-cases and drops punctuation by default (datatrove, utils/text.py). The others do not normalise."""
    assert presets.fineweb.shingles == Shingles(5, "word", lowercase=True, strip_punctuation=True, normalize="NFC")
    assert presets.bigcode.shingles == Shingles(presets.bigcode.shingles.n, presets.bigcode.shingles.unit)
    assert presets.nemo.shingles == Shingles(presets.nemo.shingles.n, presets.nemo.shingles.unit)


@pytest.mark.parametrize("preset", ALL, ids=presets.NAMES)
def test_the_options_are_those_of_deduplicate(preset):
    """Texts without shingles are kept; a copy of a short text is removed."""
    result = lsh.deduplicate(["", "", "two words", "two words", "three other words"], **preset.options())
    assert result.keep.tolist() == [True, True, True, False, True]
    assert all(result.parameters[name] == value for name, value in preset.options().items())


@pytest.mark.parametrize("name", ["FineWeb", "", None, ["nemo"]])
def test_unknown_names_are_refused(name):
    with pytest.raises(ValueError, match="preset must be one of 'fineweb', 'bigcode', 'nemo', got"):
        presets.preset(name)
