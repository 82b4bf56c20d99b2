"""Arrays, Arrow columns, iterators and other collections give the same results as a list of the same texts.

Real packages make what users have. `producer` makes the rest: every layout at any offset, damage, failure,
and a ledger of the memory that is released. The content of a batch is read back byte for byte.
"""

import gc
import re
import sys
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from producer import INDICES, Node, Producer, encoded, node, packed, runs, table
from sharing import together
from strategies import encode, texts

import lsh
from lsh._minhash import UNIT_CODES, shingles
from lsh.sketch.hasher import STREAM_BATCH
from lsh.text.batch import Batch
from lsh.text.collections import as_batch, pieces
from lsh.text.columns import Columns, fixed_width

HASHER = lsh.MinHasher(16, scheme="fss", shingles=lsh.Shingles(3))
WHOLE = 2**62 - 1  # a shingle as long as any text
LAYOUTS = ["u", "U", "z", "Z", "vu", "vz"]
SAMPLE = ["a", "", "h\xe9llo w\xf6rld, a text beyond twelve bytes", "\u6f22\u5b57", "plain", "plain", "x" * 13, "y" * 9]
BYTES = [text.encode() for text in SAMPLE]


def held(batch: Batch) -> list[bytes]:
    """The texts of a batch as it holds them."""
    return [b"".join(found) for found in shingles(batch, UNIT_CODES["byte"], WHOLE)]


def read(collection, missing: bool = False) -> list[bytes]:
    return held(as_batch("texts", collection, missing))


def as_bytes(text) -> bytes:
    return b"" if text is None else encode(text) if isinstance(text, str) else bytes(text)


def assert_taken(collection, expected: list, hasher: lsh.MinHasher = HASHER) -> None:
    """The collection is read as these texts, has the fingerprints of their list, and can be read twice."""
    assert read(collection, True) == [as_bytes(text) for text in expected]
    rows = hasher.fingerprints(collection, missing="empty")
    assert np.array_equal(rows, hasher.fingerprints(expected, missing="empty"))
    assert not rows.flags.writeable


# Objects.


@given(st.lists(texts, max_size=12))
def test_a_batch_holds_the_bytes(collection):
    assert held(Batch(collection)) == [as_bytes(text) for text in collection]
    assert Batch(collection).sizes().tolist() == [len(as_bytes(text)) for text in collection]


ENDS = ["\x7f", "\x80", "\xff", "\u07ff", "\u0800", "\ud800", "\udfff", "\uffff", "\U00010000", "\U0010ffff"]


@pytest.mark.parametrize("character", ENDS)
def test_utf8_at_the_ends_of_blocks(character):
    pads = [*range(36), 62, 63, 64, 65, 127, 128, 129, 1000]
    collection = ["a" * before + character * times for before in pads for times in (0, 1, 2, 16, 17)]
    collection += [text + "b" * 20 for text in collection]
    assert held(Batch(collection)) == [as_bytes(text) for text in collection]


def test_nothing_is_cached_in_a_text():
    collection = ["na\xefve " * 10, "\u6f22" * 10, "\U0001f600" * 10]
    before = [sys.getsizeof(text) for text in collection]
    HASHER.fingerprints(collection)
    for text in collection:
        HASHER.fingerprint(text)
    assert [sys.getsizeof(text) for text in collection] == before


def test_every_kind_of_text():
    """Also of subclasses."""
    Str, Bytes = type("Str", (str,), {}), type("Bytes", (bytes,), {})
    kinds = [Str("ascii"), Str("\u6f22\u5b57"), Bytes(b"\xff"), np.str_("n\xf6"), np.bytes_(b"b"), bytearray(b"array")]
    kinds += [memoryview(b"a view of bytes")[::2], "", b"", bytearray()]
    assert held(Batch(kinds)) == [as_bytes(text) for text in kinds]
    assert np.array_equal([HASHER.fingerprint(text) for text in kinds], HASHER.fingerprints(kinds))


class LongBytes(bytes):
    def __len__(self) -> int:
        return 2**62


class LongText(str):
    def __len__(self) -> int:
        return 2**62

    def isascii(self) -> bool:
        return True

    def encode(self, *_: object) -> bytes:
        return LongBytes(b"x")


class LongArray(bytearray):
    def __bytes__(self) -> bytes:
        return LongBytes(b"x")


@pytest.mark.parametrize("text", [LongBytes(b"abc"), LongText("abc"), LongText("äöü"), LongArray(b"abc")])
def test_a_text_is_as_long_as_it_is_whatever_its_class_says(text):
    plain = bytes(memoryview(text)) if not isinstance(text, str) else str.encode(text)
    for kind in (list, tuple):
        collection = type("Long", (kind,), {"__len__": lambda self: 1000})([text])
        assert held(Batch(collection)) == [plain]
        assert Batch(collection).sizes().tolist() == [len(plain)]
    assert np.array_equal(lsh.MinHasher(4).fingerprint(text), lsh.MinHasher(4).fingerprint(plain))


def test_what_may_change_is_copied():
    text = bytearray(b"before")
    batch = Batch([text])
    text[:] = b"after, and longer"
    assert held(batch) == [b"before"]


def test_other_threads_may_change_the_list():
    shared = [f"text number {i} \u6f22" for i in range(2000)]
    expected = {row.tobytes() for row in HASHER.fingerprints(shared)}
    taking, wrong = [1, 2, 3], []

    def change() -> None:
        while taking:
            shared.append(shared.pop(0))
            del shared[1000:]
            shared.extend(f"text number {i} \u6f22" for i in range(1000, 2000))

    def take() -> None:
        for _ in range(10):
            rows = HASHER.fingerprints(shared, num_threads=2)
            wrong.extend(row for row in rows if row.tobytes() not in expected)
        taking.pop()

    together([change, take, take, take])
    assert not wrong


def test_iterators_come_in_chunks():
    taken = 0

    def generate():
        nonlocal taken
        for taken in range(1, 10 * STREAM_BATCH + 1):
            yield f"text {taken}"

    chunks = HASHER.chunks(generate(), num_threads=1)
    assert taken == 0
    position, rows = next(chunks)
    assert (position, len(rows), taken) == (0, STREAM_BATCH, STREAM_BATCH)
    assert [position for position, _ in chunks] == [i * STREAM_BATCH for i in range(1, 10)]
    assert np.array_equal(HASHER.fingerprints(generate()), HASHER.fingerprints(list(generate())))


def test_parts_and_joins():
    column = next(Columns(Producer(node("u", BYTES))))
    for source in (tuple(SAMPLE), SAMPLE, column, Batch(SAMPLE)):
        assert held(Batch(source, start=2, stop=5)) == BYTES[2:5]
        assert held(Batch(Batch(source, start=1), start=1, stop=4)) == BYTES[2:5]
        changed = [text if text.isascii() else text[::-1] for text in BYTES[1:]]
        assert held(Batch(source, transform=lambda text: text[::-1], start=1)) == changed
    joined = Batch.join([Batch(SAMPLE, start=4), Batch([]), Batch([None, "b"], missing=True), Batch(column)])
    assert held(joined) == [*BYTES[4:], b"", b"b", *BYTES]
    assert [part.num_missing for part in (joined, Batch(joined, start=5), Batch(joined, stop=4))] == [1, 0, 0]
    assert Batch(joined, transform=bytes.upper).num_missing == 1


class NAType:
    """Like the missing value of pandas, whose comparisons have no truth value."""

    def __eq__(self, other):
        raise TypeError("boolean value of NA is ambiguous")

    __hash__ = None


@pytest.mark.parametrize("null", [None, float("nan"), np.float64("nan"), NAType()])
@pytest.mark.parametrize("make", [list, iter, lambda found: np.array(found, dtype=object)])
def test_every_null_counts_as_missing(null, make):
    found = "None" if null is None else rf"missing \({re.escape(str(null))}\)"
    with pytest.raises(ValueError, match=rf"^texts\[1\] is {found}; drop it"):
        HASHER.fingerprints(make(["a", null]))
    assert np.array_equal(HASHER.fingerprints(make(["a", null]), missing="empty"), HASHER.fingerprints(["a", ""]))
    with pytest.raises(TypeError, match=r"^texts\[1\] must be str, .* got float$"):
        HASHER.fingerprints(make(["a", 1.5]), missing="empty")


COLLECTION = "must be a collection of texts, got "


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ("a text", TypeError, COLLECTION + "one str; put it in a list"),
        (0.8, TypeError, COLLECTION + "the number 0.8"),
        (len, TypeError, COLLECTION + "a builtin_function_or_method; call it, and pass what it returns$"),
        *(
            (bad, TypeError, f"must be in a definite order, got {type(bad).__name__}")
            for bad in ({"a", "b"}, {"a": 1}, MappingProxyType({"a": 1}), lsh.Cache(HASHER).fingerprints)
        ),
        (np.array([1, 2]), TypeError, r"texts\[0\] must be str, .* got int"),
        (np.array([[b"a", b"b"]]), ValueError, "must have one dimension, got 2; pick a column"),
    ],
)
def test_no_collection(bad, error, message):
    with pytest.raises(error, match=message):
        HASHER.fingerprints(bad)


# numpy.


@pytest.mark.parametrize("dtype", ["S", "U", "O"])
def test_arrays(dtype):
    array = np.array(BYTES if dtype == "S" else SAMPLE, dtype)
    for form in (array, array[::2], array[::-1], array[3:3], array[-1::-3], np.ma.masked_array(array)):
        assert_taken(form, form.tolist())


def test_nothing_in_every_form():
    assert len(pieces("texts", Producer(stream=True, schema=Node("u")))) == 0
    assert HASHER.fingerprints(Producer(stream=True, schema=Node("u"))).shape == (0, 16)
    assert_taken(np.array([], "S5"), [])
    assert_taken(np.array([b"", b""]), [b"", b""])
    assert_taken(np.zeros(3, "S0"), [b""] * 3)
    assert_taken(np.array([]), [])
    assert_taken(np.ma.masked_array([b"a", b"b", b"c"], [False, True, False]), [b"a", None, b"c"])


@given(st.lists(st.binary(max_size=9), max_size=20))
def test_fixed_width_bytes(collection):
    array = np.array(collection, "S9")
    assert read(array) == array.tolist() == [text.rstrip(b"\0") for text in collection]
    assert held(Batch(fixed_width(array[::-1]))) == array.tolist()[::-1]


def test_fixed_width_bytes_are_not_copied():
    array = np.array([b"one", b"two"])
    batch = as_batch("texts", array)
    array[1] = b"six"
    assert held(batch) == [b"one", b"six"]
    with pytest.raises(ValueError):
        array.resize(1000)  # its memory is in use


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="this numpy has no StringDType; 2.0 has")
def test_arrays_of_strings():
    assert_taken(np.array([*SAMPLE, "nul\0"], np.dtypes.StringDType()), [*SAMPLE, "nul\0"])
    for absent in (None, np.nan):
        array = np.array(["a", absent, "b"], np.dtypes.StringDType(na_object=absent))
        assert_taken(array, ["a", None, "b"])
        with pytest.raises(ValueError, match=r"^texts\[1\] is None"):
            HASHER.fingerprints(array)


# Arrow, hand-made.

margins = st.integers(0, 11)


@st.composite
def columns(draw) -> tuple[list[Node], list[bytes | None]]:
    """The chunks of a column: plain, by a dictionary or by run ends, perhaps in a table; and its texts."""
    layout = draw(st.sampled_from([*LAYOUTS, *LAYOUTS, *(f"w:{width}" for width in range(6))]))
    width = int(layout[2:]) if layout.startswith("w") else None
    text = texts.map(as_bytes) if width is None else st.binary(min_size=width, max_size=width)
    kind, index, in_table = draw(st.integers(0, 2)), draw(st.sampled_from(list(INDICES))), draw(st.booleans())
    ends, values = draw(st.sampled_from("sil")), draw(st.sampled_from(["", *INDICES]))
    nodes, expected = [], []
    for chunk in draw(st.lists(st.lists(st.none() | text, max_size=20), min_size=1, max_size=4)):
        if kind == 0:
            nodes.append(node(layout, chunk, draw(margins), draw(margins)))
        elif kind == 1:
            nodes.append(encoded(layout, index, chunk, draw(margins)))
        else:
            chunk = [text for text in chunk for _ in range(1 + len(text or b"") % 4)]
            nodes.append(runs(ends, chunk, layout, draw(margins), values))
        expected += chunk
    return [table(made) for made in nodes] if in_table else nodes, expected


@strategies.examples(180)
@given(columns(), st.booleans())
def test_columns_and_streams(column, stream):
    nodes, expected = column
    for _ in range(2):
        source = Producer(*nodes, stream=stream)
        batch = as_batch("texts", source, True)
        assert held(batch) == [as_bytes(text) for text in expected]
        assert batch.num_missing == expected.count(None)
        del batch
        assert source.ledger.out == 0  # without garbage
    source = Producer(*nodes, stream=stream)
    rows = HASHER.fingerprints(source, missing="empty")
    assert np.array_equal(rows, HASHER.fingerprints(expected, missing="empty"))
    assert source.ledger.settled()


GAP = node("vu", [*BYTES[:3], None, *BYTES[3:]], before=2)
SLICED_RUNS = runs("i", [*BYTES[:4], None, None, *BYTES[4:]], before=3)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (table(GAP, offset=2), [SAMPLE[2], None, *SAMPLE[3:]]),
        (table(GAP, offset=2, valid=bytes([0b11101011, 0xFF])), [None, None, None, *SAMPLE[4:]]),  # 2, 4 are missing
        (replace(table(SLICED_RUNS, offset=3, valid=bytes([0b11110111, 0xFF])), nulls=-1), [None] * 3 + SAMPLE[4:]),
        (Node("+r", 4, (), 2, 0, (Node("s", 2, (None, packed("h", [3, 6]))), Node("n", 2, ()))), [None] * 4),
        (Node("+r", 0, (), 0, 0, (Node("i", 0, (None, None)), node("u", []))), []),
        (Node("n", 3, ()), [None] * 3),
        (Node("n", 3, (None,)), [None] * 3),
        (Node("u", 0, (None,) * 3), []),
        (Node("vu", 0, (None,) * 3), []),
        (Node("w:3", 0, (None,) * 2), []),
        (Node("w:0", 2, (None, None)), [b"", b""]),
        (replace(node("u", [b"", b""]), buffers=(None, packed("i", [0, 0, 0]), None)), [b"", b""]),
    ],
)
def test_columns_that_are_sliced_missing_or_empty(source, expected):
    assert_taken(Producer(source), expected)


def test_a_long_column_is_cut_into_chunks():
    collection = [b"text %d" % i for i in range(3 * STREAM_BATCH + 5)]
    source = Producer(node("u", collection))
    expected = HASHER.fingerprints(collection)
    for num_threads in (1, 2):
        assert np.array_equal(HASHER.fingerprints(source, num_threads=num_threads), expected)
        chunks = list(HASHER.chunks(source, num_threads=num_threads))
        assert [position for position, _ in chunks] == [0, STREAM_BATCH, 2 * STREAM_BATCH, 3 * STREAM_BATCH]
        assert np.array_equal(np.concatenate([rows for _, rows in chunks]), expected)
    del chunks
    assert source.ledger.settled()


def test_a_stream_is_taken_as_it_is_needed_and_released_if_it_is_left():
    source = Producer(*[node("u", [b"text %d" % i]) for i in range(50)])
    positions = []
    for position, _ in HASHER.chunks(source, num_threads=1):
        positions.append(position)
        assert source.ledger.out <= 4
    assert positions == list(range(50))
    assert source.ledger.settled()
    source = Producer(*[node("u", [b"text"])] * 50)
    chunks = HASHER.chunks(source, num_threads=2)
    next(chunks)
    chunks.close()
    del chunks
    assert source.ledger.handed < 50
    assert source.ledger.settled()


def test_a_batch_keeps_the_column_alive():
    source = Producer(node("vu", BYTES), node("vu", BYTES), stream=True)
    batch = as_batch("texts", source)
    part = Batch(batch, start=3)
    gc.collect()
    assert source.ledger.out == 2  # the arrays; the stream is released
    assert held(batch) == BYTES * 2
    del batch
    gc.collect()
    assert held(part) == (BYTES * 2)[3:]
    del part
    assert source.ledger.settled()


def test_normalised_columns():
    hasher = lsh.MinHasher(16, shingles=lsh.Shingles(2, lowercase=True, normalize="NFKC"))
    collection = ["\ufb01 ABC", "CAF\xc9", "", "Plain"]
    assert_taken(Producer(node("vu", [encode(text) for text in collection])), collection, hasher)
    assert_taken(np.array([encode(text) for text in collection]), collection, hasher)


# Arrow, damaged.

LONG = [b"a text of more than twelve bytes", b"another one, also longer than that"]
OFFSETS = node("u", [b"ab", b"cd", b"ef"])
RUN_ENDS = Node("i", 3, (None, packed("i", [2, 5, 6])))
RUNS = Node("+r", 6, (), 0, 0, (RUN_ENDS, OFFSETS))


def run_ends(code: str, *numbers: int) -> Node:
    ends = Node(code, len(numbers), (None, packed({"s": "h", "i": "i", "l": "q"}[code], numbers)))
    return replace(RUNS, children=(ends, OFFSETS))


VIEW = node("vu", LONG)


def view(length: int, buffer: int, offset: int) -> bytes:
    return packed("I", [length]) + b"    " + packed("I", [buffer, offset])


def offsets(code: str, *numbers: int) -> Node:
    return Node("u" if code == "i" else "U", len(numbers) - 1, (None, packed(code, numbers), b"abcdef"))


def viewed(*made: bytes) -> Node:
    return replace(VIEW, buffers=(None, VIEW.buffers[1][:16] + b"".join(made), *VIEW.buffers[2:]))


@pytest.mark.parametrize(
    ("source", "position", "words"),
    [
        (offsets("i", 0, 2, 1, 6), 1, "offsets"),
        (offsets("i", -2, 2, 4, 6), 0, "offsets"),
        (offsets("i", 0, 2, 4, -1), 2, "offsets"),
        (offsets("q", -(2**63), 2, 4, 6), 0, "offsets"),
        (replace(OFFSETS, buffers=(None, OFFSETS.buffers[1], None)), 0, "offsets"),
        (viewed(view(33, 0, 0)), 1, "view"),
        (viewed(view(32, 0, 1)), 1, "view"),
        (viewed(view(13, 2, 0)), 1, "view"),
        (viewed(view(2**31, 1, 2**31)), 1, "view"),
        (replace(VIEW, buffers=(*VIEW.buffers[:2], None, *VIEW.buffers[3:])), 0, "view"),
        (replace(VIEW, buffers=(*VIEW.buffers[:4], packed("q", [-1, -1]))), 0, "view"),
        (Node("c", 3, (None, packed("b", [0, 1, -1])), dictionary=VIEW), 2, "index"),
        (Node("C", 3, (None, packed("B", [0, 1, 2])), dictionary=VIEW), 2, "index"),
        (Node("i", 2, (None, packed("i", [1, -(2**31)])), dictionary=VIEW), 1, "index"),
        (Node("I", 2, (None, packed("I", [1, 2**32 - 1])), dictionary=VIEW), 1, "index"),
        (Node("L", 1, (None, packed("Q", [2**63])), dictionary=VIEW), 0, "index"),
        (Node("L", 1, (None, packed("Q", [0])), dictionary=node("u", [])), 0, "index"),
        (replace(RUNS, children=(RUN_ENDS, offsets("i", 0, 2, 1, 6))), 2, "offsets"),
        (replace(RUNS, children=(RUN_ENDS, Node("c", 3, (None, b"\0\2\0"), dictionary=VIEW))), 2, "index"),
    ],
)
def test_damaged_texts(source, position, words):
    for stream in (False, True):
        made = Producer(source, stream=stream)
        with pytest.raises(ValueError, match=rf"^texts\[{position}\] has .*{words}.*; create the Arrow column again$"):
            HASHER.fingerprints(made, missing="empty" if stream else "error")
        assert made.ledger.settled()


DAMAGED = "exports an Arrow array with .*; create the column again$"
DAMAGED_ARRAYS = [
    replace(OFFSETS, length=-1),
    replace(OFFSETS, offset=-1),
    replace(OFFSETS, length=2**62, offset=2**62),
    Node("w:1000000000", 2**40, (None, b"")),
    replace(OFFSETS, buffers=()),
    replace(OFFSETS, buffers=(None, None, b"abcdef")),
    replace(OFFSETS, nulls=1),
    replace(VIEW, buffers=(*VIEW.buffers[:4], None)),
    Node("n", 3, (None, None)),
    Node("w:3", 2, (None,)),
    Node("w:3", 2, (None, None)),
    Node("c", 2, (None, packed("b", [0, 0]), b""), dictionary=VIEW),
    Node("c", 2, (None, packed("b", [0, 0])), dictionary=replace(VIEW, buffers=())),
    replace(table(OFFSETS), length=4),
    replace(table(OFFSETS), offset=1),
    replace(table(OFFSETS), length=2**62, offset=2**62),
    replace(table(OFFSETS), buffers=()),
    replace(RUNS, length=7),
    replace(RUNS, offset=1),
    replace(RUNS, length=-1),
    replace(RUNS, length=2**62, offset=2**62),
    replace(RUNS, nulls=1),
    replace(RUNS, buffers=(None,)),
    replace(RUNS, children=(RUN_ENDS, node("u", [b"ab", b"cd"]))),
    replace(RUNS, children=(replace(RUN_ENDS, nulls=1), OFFSETS)),
    replace(RUNS, children=(replace(RUN_ENDS, buffers=(b"\x05", RUN_ENDS.buffers[1])), OFFSETS)),
    replace(RUNS, children=(replace(RUN_ENDS, buffers=(None, None)), OFFSETS)),
    replace(RUNS, children=(replace(RUN_ENDS, buffers=()), OFFSETS)),
    replace(RUNS, children=(replace(RUN_ENDS, length=-1), OFFSETS)),
    run_ends("s", 0, 5, 6),
    run_ends("s", 2, 2, 6),
    run_ends("i", 5, 2, 6),
    run_ends("l", -(2**63), 2, 6),
    run_ends("l", 2, 2**63 - 1, 6),
    run_ends("l", 2, 3, 5),
    replace(table(RUNS), length=7),
]
STRUCTS = replace(table(Node("u", name="src")), flags=2)


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        *((source, ValueError, DAMAGED) for source in DAMAGED_ARRAYS),
        (
            Node("i"),
            TypeError,
            r"must be a column of strings .*, got Arrow type 'i' .integer.; pick another column or",
        ),
        (Node("+l", children=(Node("u"),)), TypeError, "nested"),
        (Node("+r", children=(Node("i"), Node("i"))), TypeError, "'i' .integer"),
        (Node("+r", children=(Node("i"), Node("+r", children=(Node("i"), Node("u"))))), TypeError, "run-end encoded"),
        (Node("c", dictionary=Node("+r", children=(Node("i"), Node("u")))), TypeError, "run-end encoded"),
        (Node(""), TypeError, "unknown"),
        (Node("w:-1"), TypeError, "unknown"),
        (Node("uu"), TypeError, "unknown"),
        (Node("\x00"), TypeError, "unknown"),
        (Node("c", dictionary=Node("i")), TypeError, "'i' .integer"),
        (Node("c", dictionary=Node("c", dictionary=Node("u"))), TypeError, "'c' .integer"),
        (table(), TypeError, r"must be one column of texts, got a table of 0 \(\); pick a column"),
        (table(Node("u", name="id"), Node("u", name="text")), TypeError, r"table of 2 \('id', 'text'\); pick a column"),
        (STRUCTS, TypeError, r"a column of structs \('src'\); pick one of its fields"),
        (Node("+r", children=()), ValueError, "runs without their ends or values"),
        (Node("+r", children=(Node("i"),)), ValueError, "runs without their ends or values"),
        (Node("+r", children=(Node("I"), Node("u"))), ValueError, "run ends of Arrow type 'I'"),
        (Node("+r", children=(Node("ii"), Node("u"))), ValueError, "run ends of Arrow type 'ii'"),
        (Node("+r", children=(Node(""), Node("u"))), ValueError, "run ends of Arrow type ''"),
        (Node("g", dictionary=Node("u")), ValueError, "indices of Arrow type 'g'"),
    ],
)
def test_columns_that_are_refused(source, error, words):
    for stream in (False, True):
        made = Producer(source, stream=stream)
        with pytest.raises(error, match=f"^texts .*{words}"):
            HASHER.fingerprints(made)
        assert made.ledger.settled()


@pytest.mark.parametrize("schema", [Node("c", dictionary=Node("u")), table(Node("u")), replace(RUNS, buffers=())])
def test_arrays_that_are_not_what_the_schema_says(schema):
    made = Producer(OFFSETS, schema=schema)
    with pytest.raises(ValueError, match="texts exports an Arrow array with"):
        HASHER.fingerprints(made)
    assert made.ledger.settled()


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize(
    ("chunks", "failure", "message"),
    [
        *((chunks, {"fail_after": 5}, ": the disk is gone") for chunks in (0, 1, 2, 5)),
        (1, {"fail_schema": 22, "reason": None}, ""),
        (1, {"fail_schema": 22, "reason": b"\xff no utf-8"}, ""),
    ],
)
def test_a_stream_that_fails(chunks, failure, message, num_threads):
    made = Producer(*[node("u", BYTES)] * chunks, stream=True, schema=Node("u"), **failure)
    with pytest.raises(OSError, match=f"the Arrow stream of texts failed{message}") as raised:
        HASHER.fingerprints(made, num_threads=num_threads)
    assert raised.value.errno == next(iter(failure.values()))
    del raised
    assert made.ledger.settled()


@pytest.mark.parametrize("stream", [False, True])
def test_what_was_taken_cannot_be_taken_again(stream):
    made = Producer(OFFSETS, stream=stream)
    capsules = made.stream_capsule() if stream else made.array_capsules()
    name = "__arrow_c_stream__" if stream else "__arrow_c_array__"
    again = type("Again", (), {name: lambda self, requested_schema=None, made=capsules: made})()
    assert read(again) == [b"ab", b"cd", b"ef"]
    with pytest.raises(ValueError, match="released"):
        read(again)
    del capsules, again
    assert made.ledger.settled()


@pytest.mark.parametrize("name", ["__arrow_c_array__", "__arrow_c_stream__"])
def test_no_capsules(name):
    made = Producer(OFFSETS)
    other = made.stream_capsule() if name == "__arrow_c_array__" else made.array_capsules()[1]
    for value in (None, (), (None, None), "ab", other):
        column = type("Column", (), {name: lambda self, requested_schema=None, value=value: value})()
        with pytest.raises(TypeError, match=rf"^{name} of texts must return the capsule"):
            HASHER.fingerprints(column)


# The real packages.


GAPS = [*SAMPLE[:3], None, *SAMPLE[3:], None]


def test_pyarrow():
    pa = pytest.importorskip("pyarrow")
    for kind in ("string", "large_string", "string_view", "binary", "large_binary", "binary_view"):
        array = pa.array(GAPS, getattr(pa, kind)())
        chunked = pa.chunked_array([array[:3], array[3:3], array[3:]])
        for form in (array, chunked):
            assert_taken(form, GAPS)
            assert_taken(form[2:8], GAPS[2:8])
            assert_taken(pa.table({"text": form}), GAPS)
            assert_taken(pa.table({"text": form})[1:6], GAPS[1:6])
        assert_taken(pa.record_batch({"text": array}).slice(2, 5), GAPS[2:7])
    assert_taken(pa.array([b"abc", None, b"def"], pa.binary(3)), [b"abc", None, b"def"])
    assert_taken(pa.array([]), [])
    assert_taken(pa.chunked_array([], pa.string()), [])
    assert_taken(pa.array([None, None]), [None, None])


def test_pyarrow_readers_and_batches():
    """A reader, or an iterable of columns or tables with one column each, of any type, is one collection."""
    pa = pytest.importorskip("pyarrow")
    batches = [pa.record_batch({"text": pa.array(GAPS[i : i + 3], pa.string())}) for i in range(0, len(GAPS), 3)]
    columns = [
        pa.array(GAPS[:4], pa.large_string()),
        pa.array([], pa.string()),
        pa.chunked_array([GAPS[4:5], GAPS[5:]]),
    ]

    def reader(made):
        return pa.RecordBatchReader.from_batches(batches[0].schema, made)

    expected = HASHER.fingerprints(GAPS, missing="empty")
    for made in (reader(iter(batches)), batches, iter(batches), tuple(columns), (column for column in columns)):
        assert np.array_equal(HASHER.fingerprints(made, missing="empty"), expected)
    result = lsh.deduplicate(lambda: iter(batches), missing="empty")
    assert result.keep.tolist() == lsh.deduplicate(GAPS, missing="empty").keep.tolist()

    def fails():
        yield batches[0]
        raise ValueError("line 7 is damaged")

    for bad, error, message in (
        (reader(fails()), OSError, "line 7 is damaged"),
        ([pa.record_batch({"id": [1], "text": ["a"]})], TypeError, r"table of 2 \('id', 'text'\); pick a column"),
        ([batches[0], "a text"], TypeError, "must be"),
    ):
        with pytest.raises(error, match=message):
            HASHER.fingerprints(bad, missing="empty")


def test_polars():
    pl = pytest.importorskip("polars")
    for kind in (pl.String, pl.Categorical, pl.Object):
        series = pl.Series("text", GAPS, dtype=kind)
        assert_taken(series, GAPS)
        assert_taken(series[2:8], GAPS[2:8])
    assert_taken(pl.Series(GAPS, dtype=pl.Enum(list(dict.fromkeys(SAMPLE)))), GAPS)
    assert_taken(pl.Series([as_bytes(text) for text in GAPS]), [as_bytes(text) for text in GAPS])
    chunked = pl.concat([pl.Series(GAPS[:3]), pl.Series(GAPS[3:])], rechunk=False)
    assert chunked.n_chunks() == 2
    assert_taken(chunked, GAPS)
    assert_taken(pl.DataFrame({"text": chunked}), GAPS)
    assert_taken(pl.Series([]), [])
    assert_taken(pl.Series([None, None]), [None, None])
    long = [f"{text} {i}" for i, text in enumerate(["a text of some length"] * 3000)]
    assert_taken(pl.Series(long).filter(pl.Series([i % 3 == 0 for i in range(3000)])), long[::3])
    with pytest.raises(TypeError, match=r"table of 2 \('id', 'text'\); pick a column"):
        HASHER.fingerprints(pl.DataFrame({"id": [1], "text": ["a"]}))
    with pytest.raises(TypeError, match="pick a column"):
        HASHER.fingerprints(pl.DataFrame({"text": pl.Series(["a"], dtype=pl.Object)}))
    with pytest.raises(TypeError, match="got a whole LazyFrame"):
        HASHER.fingerprints(pl.LazyFrame({"text": ["a"]}))


def test_pandas():
    pd = pytest.importorskip("pandas")
    for dtype in (None, object, "string", "category"):
        series = pd.Series(GAPS, dtype=dtype, index=[f"row {i}" for i in range(len(GAPS))])
        for form in (series, series.array, pd.Index(series)):
            assert_taken(form, GAPS)
        assert_taken(series.iloc[2:8], GAPS[2:8])
        assert_taken(series.iloc[::-2], GAPS[::-2])
        assert_taken(pd.DataFrame({"text": series.reset_index(drop=True)}), GAPS)
    mixed = pd.Series(["a", b"b", None, float("nan"), pd.NA, "\ud800"], dtype=object)
    assert_taken(mixed, ["a", b"b", None, None, None, "\ud800"])
    with pytest.raises(TypeError, match=r"texts\[1\] must be str, .* got int"):
        HASHER.fingerprints(pd.Series(["a", 1], dtype=object))
    with pytest.raises(TypeError, match="pick a column"):
        HASHER.fingerprints(pd.DataFrame({"id": [1], "text": ["a"]}))


def test_duckdb():
    duckdb = pytest.importorskip("duckdb")
    texts = ["a", None, "\xe9", "more than twelve bytes"]
    for query, expected in [
        ("select * from (values ('a'), (NULL), ('\xe9'), ('more than twelve bytes')) t(x)", texts),
        ("select 'number ' || range as text from range(5000)", [f"number {i}" for i in range(5000)]),
    ]:
        assert read(duckdb.sql(query), True) == [as_bytes(text) for text in expected]  # its results can be read once
        rows = HASHER.fingerprints(duckdb.sql(query), missing="empty")
        assert np.array_equal(rows, HASHER.fingerprints(expected, missing="empty"))
    with pytest.raises(TypeError, match=r"table of 2 .* pick a column"):
        HASHER.fingerprints(duckdb.sql("select 1 as id, 'a' as text"))
    connection = duckdb.connect().execute("select 'a text' as text")
    with pytest.raises(TypeError, match=r'got a DuckDB connection; pass a relation: con.sql\("select text from ...'):
        lsh.deduplicate(connection)
