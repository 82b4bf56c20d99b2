"""Texts for hypothesis: plain, Unicode, damaged UTF-8, repetitive, and similar pairs; and the number of examples.

The pieces are difficult for shingles, words and normalisation: characters whose length changes under lower-casing,
marks that combine with the preceding character, the rare white space of `\\s`, and bytes that resemble UTF-8.

The environment variable LSH_TEST_PROFILE names a profile. Each profile multiplies the number of examples of every test.
"""

import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

PROFILES = {"quick": 0.15, "default": 0.2, "ci": 3, "thorough": 10}
PROFILE = os.environ.get("LSH_TEST_PROFILE") or "default"
if PROFILE not in PROFILES:
    raise ValueError(f"LSH_TEST_PROFILE must be one of {', '.join(PROFILES)}, got {PROFILE!r}")
SCALE = PROFILES[PROFILE]


def examples(count: int, **others: Any) -> settings:
    """Return the settings of a test that draws `count` examples, times the factor of the profile."""
    return settings(max_examples=max(1, round(count * SCALE)), **others)


settings.register_profile(
    "lsh",
    examples(100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True),
)
settings.load_profile("lsh")  # for tests without their own settings, and for settings that `examples` does not set

CHARACTERS = [
    *"abAB_7\0 ",
    "  ",
    "\t\n",
    *"\r\x1c\x85\xa0\u2003\u2028\u3000.,-'!\u2019\u2014\u3002\xbf$+\xb4\xe9",
    "e\u0301",
    *"\u0301\u0130\u03a3\u03c3\xdf\u1e9e\ufb01\u2460\xb2\u212b\u6f22\uac00",
    "\u1100\u1161",
    *"\u0e33\U0001f600\U0010ffff\ufffd\ufeff\u200d\uffff",
]
SURROGATES = ["\ud800", "\udbff", "\udc00", "\udfff", "\ud83d\ude00"]
DAMAGED_HEX = (
    "ff fe 80 bf c080 c1bf e08080 e09fbf f08fbfbf f4908080 f5808080 c3 e6 e6bc f09f f09f98 ed eda0 a2 bca2 9f9880"
)
DAMAGED = [bytes.fromhex(code) for code in DAMAGED_HEX.split()]


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


plain = st.text(alphabet="ab ", max_size=40)
awkward = st.lists(st.sampled_from(CHARACTERS + SURROGATES), max_size=25).map("".join)
any_str = st.text(alphabet=st.characters(exclude_categories=()), max_size=40)
damaged = st.lists(st.sampled_from([*map(encode, CHARACTERS + SURROGATES), *DAMAGED]), max_size=25).map(b"".join)
repeated = st.builds(lambda piece, times: piece * times, st.one_of(awkward, damaged), st.integers(0, 6))
texts = st.one_of(plain, awkward, any_str, awkward.map(encode), damaged, st.binary(max_size=60), repeated)


@st.composite
def alike(draw) -> tuple[str | bytes, str | bytes]:
    """Two texts: one is the other with an inserted piece, or both are arbitrary."""
    first = draw(texts)
    if draw(st.integers(0, 3)) == 0:
        return first, draw(texts)
    at = draw(st.integers(0, len(first)))
    piece = draw(st.sampled_from(CHARACTERS))
    return first, first[:at] + (piece if isinstance(first, str) else encode(piece)) + first[at:]


units = st.sampled_from(["byte", "char", "word"])
shingle_sizes = st.one_of(st.integers(1, 10), st.integers(1, 40))
flags = dict.fromkeys(("lowercase", "strip_punctuation", "collapse_whitespace"), st.booleans())
normalisations = st.fixed_dictionaries({}, optional={"normalize": st.sampled_from([None, "NFC", "NFKC"]), **flags})
