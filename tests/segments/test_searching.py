"""Sorted keys of a segment against slow reference code: sorting, searching, merging, and wrong content of files."""

import contextlib
import itertools

import numpy
import pytest
import reference
import strategies
from hypothesis import example, given
from hypothesis import strategies as st

from lsh.segments.searching import (
    Blocks,
    IndexDamagedError,
    Searcher,
    SortedKeys,
    block_sums,
    merged,
    sorted_keys,
)

M64 = 2**64 - 1
BLOCK = 1 << 16
DROPPED = 2**32 - 1


def as_sorted(pairs):
    """The arrays of sorted keys for (key, document) pairs, each document once."""
    pairs = sorted(pairs, key=lambda pair: pair[1])
    keys = numpy.array([key for key, _ in pairs], numpy.uint64)
    return sorted_keys(keys, numpy.array([number for _, number in pairs], numpy.uint32))


def as_pairs(arrays):
    return list(zip(*(array.tolist() for array in arrays), strict=True))


def keys_of_kind(kind, count, random):
    keys = random.integers(0, 2**64, count, dtype=numpy.uint64)
    if kind == "few":
        return keys % numpy.uint64(5)
    if kind == "low":  # all at the begin of the range of keys
        return keys >> numpy.uint64(44)
    if kind == "high":  # all at its end
        return keys | numpy.uint64(M64 ^ 2**40 - 1)
    if kind == "giant" and count:
        keys[random.random(count) < 0.8] = keys[0]
    return keys


KINDS = ["uniform", "few", "low", "high", "giant"]
COUNTS = [0, 1, 2, 4095, 4096, *(pytest.param(count, marks=pytest.mark.slow) for count in (2**18 - 1, 2**18)), 70_000]


@pytest.mark.few(5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", COUNTS)
def test_many_keys_are_sorted_and_found(kind, count):
    random = numpy.random.default_rng(count)
    keys = keys_of_kind(kind, count, random)
    arrays = sorted_keys(keys, numpy.arange(count, dtype=numpy.uint32))
    ordered, order = numpy.sort(keys), numpy.argsort(keys, kind="stable")
    assert [array.tolist() for array in arrays] == [ordered.tolist(), order.tolist()]
    sorted_ones = SortedKeys(*arrays)
    sorted_ones.verify(count)
    assert len(sorted_ones) == count
    some = random.choice(keys, 500) if count else keys
    near = numpy.concatenate([some + numpy.uint64(1), some - numpy.uint64(1)])
    wanted = numpy.concatenate([some, near, keys_of_kind(kind, 300, random), numpy.array([0, M64], numpy.uint64)])
    starts, stops = sorted_ones.find(wanted)
    sizes = numpy.searchsorted(ordered, wanted, "right") - numpy.searchsorted(ordered, wanted)
    assert stops.tolist() == (starts + sizes).tolist()
    for start, stop, key in list(zip(starts.tolist(), stops.tolist(), wanted))[::7]:
        first = int(numpy.searchsorted(ordered, key))
        assert sorted_ones.members(start, stop).tolist() == order[first : first + stop - start].tolist()


class Segment:
    """A segment of random documents, and the same as lists."""

    def __init__(self, random, documents, bands, *, values, k=16, dtype=numpy.uint8, share=0.0):
        self.keys = random.integers(0, values, (bands, documents), dtype=numpy.uint64) * numpy.uint64(M64 // values)
        self.keyed = numpy.flatnonzero(random.random(documents) < 0.9).astype(numpy.uint32)
        self.sketches = random.integers(0, 3, (documents, k)).astype(dtype)
        self.removed = random.random(documents) < share
        self.bands = [SortedKeys(*sorted_keys(row[self.keyed], self.keyed)) for row in self.keys]
        self.pairs = [list(zip(row[self.keyed].tolist(), self.keyed.tolist())) for row in self.keys]
        bits = numpy.packbits(self.removed, bitorder="little")
        self.searcher = Searcher(self.bands, documents, self.sketches, bits)

    def twin(self, keys, rows, least, top):
        removed = set(numpy.flatnonzero(self.removed).tolist())
        found = []
        for q in range(keys.shape[1]):
            equal = (self.sketches == rows[q]).sum(1).tolist()
            found.append(reference.search(self.pairs, keys[:, q].tolist(), equal.__getitem__, removed, least, top))
        return found


def as_matches(bounds, numbers, equal):
    found = list(zip(numbers.tolist(), equal.tolist()))
    assert bounds[0] == 0
    assert bounds[-1] == len(found)
    return [found[start:stop] for start, stop in itertools.pairwise(bounds)]


@given(
    seed=st.integers(0, 2**32),
    documents=st.integers(1, 60),
    bands=st.integers(1, 5),
    values=st.sampled_from([1, 2, 7, 1000]),
    queries=st.integers(0, 30),
    least=st.integers(0, 17),
    top=st.none() | st.integers(1, 70),
    dtype=st.sampled_from([numpy.uint8, numpy.uint32, numpy.uint64]),
    share=st.sampled_from([0.0, 0.3, 1.0]),
)
@example(0, 60, 3, 1, 5, 0, 1, numpy.uint8, 0.0)
@strategies.examples(300)
def test_search_against_twin(seed, documents, bands, values, queries, least, top, dtype, share):
    random = numpy.random.default_rng(seed)
    segment = Segment(random, documents, bands, values=values, dtype=dtype, share=share)
    keys = segment.keys[:, random.integers(0, documents, queries)].copy()
    rows = random.integers(0, 3, (queries, 16)).astype(dtype)
    found = as_matches(*segment.searcher.search(keys, rows, least, top))
    assert found == segment.twin(keys, rows, least, top)


@pytest.mark.few(2)
@pytest.mark.parametrize("top", [None, 100, *(pytest.param(top, marks=pytest.mark.slow) for top in (1, 1000, 10**6))])
@pytest.mark.parametrize("values", [1, 3, 10**6])
def test_search_across_windows(top, values):
    """Documents of several windows of 2**16, in buckets of many sizes; a walk that stops leaves nothing behind."""
    random = numpy.random.default_rng(values)
    segment = Segment(random, 140_000, 3, values=values, k=5, share=0.2)
    keys = segment.keys[:, [0, 70_000, 139_999]].copy()
    rows = segment.sketches[[0, 70_000, 139_999]].copy()
    found = as_matches(*segment.searcher.search(keys, rows, 2, top))
    assert found == segment.twin(keys, rows, 2, top)


def test_many_queries_and_many_bands():
    random = numpy.random.default_rng(5)
    segment = Segment(random, 60, 300, values=40)
    keys = segment.keys.copy()
    bounds, numbers, equal = segment.searcher.search(keys, segment.sketches, 0)
    found = as_matches(bounds, numbers, equal)
    assert found == segment.twin(keys, segment.sketches, 0, None)
    repeated = segment.searcher.search(numpy.tile(keys, 4), numpy.tile(segment.sketches, (4, 1)), 0)  # several groups
    assert as_matches(*repeated) == 4 * found


@st.composite
def parts_to_merge(draw):
    """Pairs of several parts, and the new numbers of their documents."""
    key = st.integers(0, 4) | st.integers(0, M64)
    sizes = draw(st.lists(st.integers(0, 12), max_size=6))
    parts = [[(draw(key), number) for number in range(size) if draw(st.integers(0, 4))] for size in sizes]
    fresh, renumbered = itertools.count(), [[] for _ in sizes]
    owners = [part for part, size in enumerate(sizes) for _ in range(size)]
    if draw(st.booleans()):  # else the documents of a part come after those of the parts before it
        owners = draw(st.permutations(owners))
    dropped = draw(st.lists(st.integers(0, 1), min_size=len(sizes), max_size=len(sizes)))  # of each four
    for part in owners:
        renumbered[part].append(next(fresh) if draw(st.integers(1, 4)) > dropped[part] else None)
    return parts, renumbered


def as_merged(parts, renumbered, reused=None):
    sorted_parts = [SortedKeys(*as_sorted(part)) for part in parts]
    new = [
        numpy.array([DROPPED if new is None else new for new in part], numpy.uint32)
        if None in part or part != list(range(part[0] if part else 0, (part[-1] if part else -1) + 1))
        else range(*([part[0], part[-1] + 1] if part else [0]))
        for part in renumbered
    ]
    return merged(sorted_parts, new, reused)


@given(case=parts_to_merge())
@example(case=([], []))
@example(case=([[]], [[]]))
def test_merge_against_twin(case):
    found = as_merged(*case)
    expected = reference.merged(*case)
    assert as_pairs(found) == expected
    for array in found:
        array.fill(255)
    again = as_merged(*case, found)
    assert as_pairs(again) == expected
    assert again is found  # the memory is used again
    other = as_sorted([(0, number) for number in range(len(found[1]) + 1)])
    assert as_pairs(as_merged(*case, other)) == expected


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(300_000,), (100, 5000, 270_000), (4096,) * 9])
def test_merging_many(kind, sizes):
    random = numpy.random.default_rng(len(sizes))
    keys = [keys_of_kind(kind, size, random) for size in sizes]
    parts = [SortedKeys(*sorted_keys(part, numpy.arange(len(part), dtype=numpy.uint32))) for part in keys]
    kept = random.random(sum(sizes)) < 0.8
    for is_mixed in (False, True):
        owners = numpy.repeat(numpy.arange(len(sizes)), sizes)
        owners = random.permutation(owners) if is_mixed else owners
        order = numpy.argsort(owners, kind="stable")  # where the documents of each part are among all
        new = numpy.where(kept, numpy.cumsum(kept) - 1, DROPPED).astype(numpy.uint32)
        found = merged(parts, numpy.split(new[order], numpy.cumsum(sizes)[:-1]))
        mixed = numpy.empty(sum(sizes), numpy.uint64)
        mixed[order] = numpy.concatenate(keys)
        expected = sorted_keys(mixed[kept], numpy.arange(kept.sum(), dtype=numpy.uint32))
        for array, other in zip(found, expected):
            numpy.testing.assert_array_equal(array, other)


# ---- files that are damaged ----


def test_damaged_blocks_are_found():
    for size in (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 17):
        good = numpy.random.default_rng(size).bytes(size)
        assert block_sums(good).tolist() == reference.block_sums(good)
        blocks = Blocks(good, block_sums(good), "a file")
        blocks.check(0, size)
        blocks.verify()
        assert blocks.name == "a file"
    data = bytearray(numpy.random.default_rng(0).bytes(3 * BLOCK + 5))
    sums = block_sums(data)
    data[BLOCK] ^= 1
    data[-1] ^= 128
    blocks = Blocks(data, sums, "index/segment-000007")
    blocks.check(0, BLOCK)
    blocks.check(2 * BLOCK, 3 * BLOCK)
    blocks.check(BLOCK, BLOCK)
    for start, stop, first in [(0, BLOCK + 1, BLOCK), (2 * BLOCK - 1, 2 * BLOCK, BLOCK), (0, len(data), BLOCK)]:
        message = f"index/segment-000007 is damaged: bytes {first} to {first + BLOCK - 1} "
        with pytest.raises(IndexDamagedError, match=message):
            blocks.check(start, stop)
    with pytest.raises(IndexDamagedError, match=f"bytes {3 * BLOCK} to {3 * BLOCK + 4} "):
        blocks.check(3 * BLOCK, 3 * BLOCK + 1)
    data[BLOCK] ^= 1
    blocks.check(0, 3 * BLOCK)
    data[0] ^= 1
    blocks.check(0, BLOCK)  # not read again
    with pytest.raises(IndexDamagedError, match=f"bytes 0 to {BLOCK - 1} "):
        blocks.verify()


class File:
    """The bands and sketches of a segment as parts of one array, like those of a mapped file."""

    def __init__(self, random, documents, bands, values):
        keys = random.integers(0, values, (bands, documents), dtype=numpy.uint64) * numpy.uint64(M64 // values)
        numbers = numpy.arange(documents, dtype=numpy.uint32)
        self.parts = [part for row in keys for part in sorted_keys(row, numbers)]
        self.parts.append(random.integers(0, 256, (documents, 64)).astype(numpy.uint8))
        self.keys, self.documents, self.places = keys, documents, []
        end = 0
        for part in self.parts:
            self.places.append(end)
            end += -(-part.nbytes // 64) * 64
        self.bytes = numpy.zeros(end, numpy.uint8)
        for part, place in zip(self.parts, self.places):
            self.bytes[place : place + part.nbytes] = part.reshape(-1).view(numpy.uint8)
        self.sums = block_sums(self.bytes)

    def open(self, checked=True):
        """The bands and the searcher over the bytes as they are now."""
        blocks = Blocks(self.bytes, self.sums, "segment-000001") if checked else None
        views = [
            self.bytes[place : place + part.nbytes].view(part.dtype).reshape(part.shape)
            for part, place in zip(self.parts, self.places)
        ]
        bands = [SortedKeys(*views[i : i + 2], blocks) for i in range(0, len(views) - 1, 2)]
        return bands, Searcher(bands, self.documents, views[-1])

    def use(self, checked=True):
        """Use all of the file; return what is found."""
        bands, searcher = self.open(checked)
        found = list(searcher.search(self.keys, self.parts[-1]))
        new = numpy.arange(self.documents, dtype=numpy.uint32)
        for band, keys in zip(bands, self.keys):
            found += merged([band], [new])
            starts, stops = band.find(keys)
            found += [band.members(start, stop) for start, stop in zip(starts[:50], stops[:50])]
            band.verify(self.documents)
        return [array.tolist() for array in found]


FILES = {"small": (300, 2, 100), "large": (5000, 2, 10**9), "equal": (500, 1, 1)}


@pytest.fixture(scope="module", params=FILES)
def a_file(request):
    made = File(numpy.random.default_rng(1), *FILES[request.param])
    found = made.use()
    assert found == made.use(checked=False)
    assert all(number in found[1][start:stop] for number, (start, stop) in enumerate(itertools.pairwise(found[0])))
    return made


@given(place=st.floats(0, 1), bit=st.integers(0, 7))
@example(0.0, 0)
@example(1.0, 7)
@strategies.examples(60)
def test_each_changed_bit_is_found(a_file, place, bit):
    at = int(place * (len(a_file.bytes) - 1))
    a_file.bytes[at] ^= 1 << bit
    try:
        message = r"segment-000001 is damaged: bytes \d+ to \d+ do not have their checksum"
        with pytest.raises(IndexDamagedError, match=message):
            a_file.use()
    finally:
        a_file.bytes[at] ^= 1 << bit


@given(data=st.data())
@strategies.examples(200)
def test_wrong_content_with_right_checksums(a_file, data):
    """Whatever a file holds, reading it ends with a result or an error."""
    before = a_file.bytes.copy()
    changes = st.lists(st.sampled_from([0, 1, 127, 255]), min_size=4, max_size=4)
    try:
        for _ in range(data.draw(st.integers(1, 4))):
            part = data.draw(st.integers(0, len(a_file.parts) - 1))
            place = a_file.places[part] + data.draw(st.integers(0, a_file.parts[part].nbytes - 4))
            a_file.bytes[place : place + 4] = data.draw(changes)
        a_file.sums = block_sums(a_file.bytes)
        with contextlib.suppress(IndexDamagedError):
            a_file.use()
        bands, _ = a_file.open()
        with contextlib.suppress(IndexDamagedError):
            bands[0].find(a_file.keys[0])
    finally:
        a_file.bytes[:] = before
        a_file.sums = block_sums(a_file.bytes)


def test_wrong_numbers_and_keys_out_of_order():
    zeros, five = numpy.zeros(5, numpy.uint64), numpy.arange(5, dtype=numpy.uint32)
    far = SortedKeys(*sorted_keys(zeros, numpy.array([0, 1, 2, 3, 5], numpy.uint32)))
    bad = SortedKeys(zeros, five[::-1].copy())
    others = SortedKeys(*sorted_keys(five.astype(numpy.uint64), five))
    worse = SortedKeys(numpy.array([1, 0, 2, 3, 4], numpy.uint64), five)
    windows = SortedKeys(zeros[:4], numpy.array([150_000, 70_000, 3, 199_999], numpy.uint32))
    asked = numpy.zeros((1, 1), numpy.uint64), numpy.zeros((1, 1), numpy.uint8)
    out_of_range, unsorted = "a document number is out of range", "the sorted keys are not in order"
    for use, message in (
        (lambda: far.verify(5), out_of_range),
        (lambda: merged([far], [five]), out_of_range),
        (lambda: Searcher([far], 5, numpy.zeros((5, 1), numpy.uint8)).search(*asked), out_of_range),
        (lambda: bad.verify(5), unsorted),
        (lambda: worse.verify(5), unsorted),
        (lambda: merged([bad, others], [five] * 2), unsorted),
        (lambda: merged([worse], [five]), unsorted),
        (lambda: Searcher([windows], 200_000, numpy.zeros((200_000, 1), numpy.uint8)).search(*asked), unsorted),
    ):
        with pytest.raises(IndexDamagedError, match=message):
            use()
    for keys, numbers in ((4, 5), (6, 5), (5, 0)):
        with pytest.raises(IndexDamagedError, match=f"there are {keys} keys and {numbers} documents"):
            SortedKeys(numpy.zeros(keys, numpy.uint64), numpy.zeros(numbers, numpy.uint32))
