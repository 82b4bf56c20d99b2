"""A producer of Arrow columns in plain Python: the C structs by ctypes, written from the format's specification.

It makes columns that real packages do not export: every layout at any offset, damaged buffers, streams that fail. It
counts the exported and the released structs. It overwrites buffers at their release, so that a consumer that keeps
pointers too long reads invalid data. https://arrow.apache.org/docs/format/CDataInterface.html
"""

import ctypes
import gc
import struct
from collections import Counter
from dataclasses import dataclass, field

POINTER, INT64, ADDRESS = ctypes.POINTER, ctypes.c_int64, ctypes.c_void_p


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


class ArrowArrayStream(ctypes.Structure):
    pass


Release = ctypes.CFUNCTYPE(None, ADDRESS)
GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ADDRESS, POINTER(ArrowSchema))
GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ADDRESS, POINTER(ArrowArray))
GetLastError = ctypes.CFUNCTYPE(ADDRESS, ADDRESS)

ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ADDRESS),
    ("flags", INT64),
    ("n_children", INT64),
    ("children", POINTER(POINTER(ArrowSchema))),
    ("dictionary", POINTER(ArrowSchema)),
    ("release", ADDRESS),
    ("private_data", ADDRESS),
]
ArrowArray._fields_ = [
    ("length", INT64),
    ("null_count", INT64),
    ("offset", INT64),
    ("n_buffers", INT64),
    ("n_children", INT64),
    ("buffers", POINTER(ADDRESS)),
    ("children", POINTER(POINTER(ArrowArray))),
    ("dictionary", POINTER(ArrowArray)),
    ("release", ADDRESS),
    ("private_data", ADDRESS),
]
ArrowArrayStream._fields_ = [
    ("get_schema", GetSchema),
    ("get_next", GetNext),
    ("get_last_error", ADDRESS),
    ("release", ADDRESS),
    ("private_data", ADDRESS),
]

new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ADDRESS, ctypes.c_char_p, ADDRESS)(
    ("PyCapsule_New", ctypes.pythonapi)
)


@dataclass(frozen=True)
class Node:
    """An array, or, without buffers, the description of its schema."""

    format: str
    length: int = 0
    buffers: tuple[bytes | None, ...] = ()
    offset: int = 0
    nulls: int = -1
    children: tuple["Node", ...] = ()
    dictionary: "Node | None" = None
    name: str = ""
    flags: int = 0


@dataclass
class Ledger:
    """The structs exported and not yet released. Keeps every object alive that a consumer may read."""

    released: Counter = field(default_factory=Counter)
    handed: int = 0
    kept: dict = field(default_factory=dict)

    def enter(self, struct_, release, *kept) -> None:
        self.handed += 1
        struct_.private_data = self.handed
        struct_.release = ctypes.cast(release, ADDRESS)
        self.kept[self.handed] = kept

    def leave(self, kind, address) -> None:
        released = kind.from_address(address)
        self.released[released.private_data] += 1
        released.release = None

    @property
    def out(self) -> int:
        return self.handed - len(self.released)

    def settled(self) -> bool:
        """Whether each struct was released exactly once, at the latest with the garbage."""
        if self.out:
            gc.collect()
        return self.out == 0 and set(self.released.values()) <= {1}


ALIVE: "list[Producer]" = []  # C code may hold pointers to their callbacks at any time


class Producer:
    """Exports `nodes`: as an array if there is one and `stream` is false, else as a stream that may fail.

    `fail_schema`, `fail_after`: the errno that get_schema, or get_next after the last array, returns.
    """

    def __init__(
        self,
        *nodes: Node,
        stream: bool = False,
        fail_schema: int = 0,
        fail_after: int = 0,
        reason: bytes | None = b"the disk is gone",
        schema: Node | None = None,
    ) -> None:
        self.nodes = nodes
        self.schema_node = schema or nodes[0]
        self.fail_schema = fail_schema
        self.fail_after = fail_after
        self.reason = reason
        self.ledger = Ledger()
        ALIVE.append(self)
        self.callbacks = [
            Release(lambda address: self.ledger.leave(ArrowSchema, address)),
            Release(self._release_array),
            Release(lambda address: self.ledger.leave(ArrowArrayStream, address)),
            GetSchema(self._get_schema),
            GetLastError(lambda _: None if reason is None else ctypes.cast(self.words, ADDRESS).value),
        ]
        self.words = ctypes.create_string_buffer(reason or b"")
        if stream or len(nodes) > 1:
            self.__arrow_c_stream__ = self.stream_capsule
        else:
            self.__arrow_c_array__ = self.array_capsules

    # The methods that a consumer calls.

    def array_capsules(self, requested_schema=None):
        schema, array = ArrowSchema(), ArrowArray()
        self._fill_schema(schema, self.schema_node)
        self._fill_array(array, self.nodes[0])
        return self._capsule(schema, b"arrow_schema"), self._capsule(array, b"arrow_array")

    def stream_capsule(self, requested_schema=None):
        stream, rest = ArrowArrayStream(), iter(self.nodes)
        stream.get_schema, stream.get_next = self.callbacks[3], GetNext(lambda _, out: self._get_next(rest, out))
        stream.get_last_error = ctypes.cast(self.callbacks[4], ADDRESS)
        self.ledger.enter(stream, self.callbacks[2], stream, stream.get_next)
        return self._capsule(stream, b"arrow_array_stream")

    def _get_schema(self, _, out) -> int:
        if not self.fail_schema:
            self._fill_schema(out.contents, self.schema_node)
        return self.fail_schema

    def _get_next(self, rest, out) -> int:
        ctypes.memset(out, 0, ctypes.sizeof(ArrowArray))
        for made in rest:
            self._fill_array(out.contents, made)
            return 0
        return self.fail_after

    def _release_array(self, address: int) -> None:
        array = ArrowArray.from_address(address)
        for buffer in self.ledger.kept[array.private_data][0]:
            ctypes.memset(buffer, 0xDD, len(buffer))
        self.ledger.leave(ArrowArray, address)

    # The structs.

    def _capsule(self, struct_, name: bytes):
        """A capsule whose destructor releases the struct if no consumer has moved it."""
        release = {b"arrow_schema": 0, b"arrow_array": 1, b"arrow_array_stream": 2}[name]

        def end(capsule: int) -> None:
            if struct_.release:
                self.callbacks[release](ctypes.addressof(struct_))

        destructor = Release(end)
        self.ledger.kept[name, id(struct_)] = name, struct_, destructor
        return new_capsule(ctypes.addressof(struct_), name, ctypes.cast(destructor, ADDRESS))

    def _fill_schema(self, schema, node: Node, root: bool = True) -> None:
        schema.format, schema.name, schema.flags = node.format.encode(), node.name.encode(), node.flags
        children = [ArrowSchema() for _ in node.children]
        for child, child_node in zip(children, node.children):
            self._fill_schema(child, child_node, False)
        pointers = (POINTER(ArrowSchema) * len(children))(*map(ctypes.pointer, children))
        schema.n_children, schema.children = len(children), pointers
        if node.dictionary:
            values = ArrowSchema()
            self._fill_schema(values, node.dictionary, False)
            schema.dictionary = ctypes.pointer(values)
        if root:
            self.ledger.enter(schema, self.callbacks[0], schema, children, pointers)

    def _fill_array(self, array, node: Node, into: list | None = None) -> None:
        buffers = [] if into is None else into
        array.length, array.offset, array.null_count = node.length, node.offset, node.nulls
        own = [None if data is None else ctypes.create_string_buffer(data, len(data)) for data in node.buffers]
        buffers += [buffer for buffer in own if buffer is not None]
        places = (ADDRESS * len(own))(*[None if buffer is None else ctypes.addressof(buffer) for buffer in own])
        array.n_buffers, array.buffers = len(own), places
        children = [ArrowArray() for _ in node.children]
        for child, child_node in zip(children, node.children):
            self._fill_array(child, child_node, buffers)
        pointers = (POINTER(ArrowArray) * len(children))(*map(ctypes.pointer, children))
        array.n_children, array.children = len(children), pointers
        if node.dictionary:
            values = ArrowArray()
            self._fill_array(values, node.dictionary, buffers)
            array.dictionary = ctypes.pointer(values)
        if into is None:
            self.ledger.enter(array, self.callbacks[1], buffers, array, places, children, pointers)


# Arrays from lists. `before` and `after` are texts outside the slice, which a reader must not read.

OFFSETS = {"u": "i", "z": "i", "U": "q", "Z": "q"}
INDICES = dict(zip("cCsSiIlL", "bBhHiIqQ"))


def bitmap(flags: list[bool]) -> bytes:
    return bytes(sum(flag << bit for bit, flag in enumerate(flags[i : i + 8])) for i in range(0, len(flags), 8))


def packed(code: str, numbers) -> bytes:
    return struct.pack(f"<{len(numbers)}{code}", *numbers)


def node(layout: str, texts: list[bytes | None], before: int = 0, after: int = 0) -> Node:
    """An array of texts in a layout, sliced from a longer array whose other elements are invalid."""
    rows = [b"before"] * before + texts + [b"after"] * after
    if layout.startswith("w:"):
        rows = [b"-" * int(layout[2:]) if row is None or len(row) != int(layout[2:]) else row for row in rows]
        body: tuple[bytes | None, ...] = (b"".join(rows),)
    elif layout in OFFSETS:
        offsets = [0]
        for row in rows:
            offsets.append(offsets[-1] + len(row or b""))
        body = packed(OFFSETS[layout], offsets), b"".join(row or b"" for row in rows)
    else:
        body = views(rows)
    valid = [text is not None for text in texts]
    flags = None if all(valid) else bitmap([False] * before + valid + [False] * after)
    return Node(layout, len(texts), (flags, *body), before, -1 if before % 2 else valid.count(False))


def views(rows: list[bytes | None]) -> tuple[bytes, ...]:
    """The buffers of views: long texts alternate between two buffers; the view of a missing text is invalid."""
    data, made = [b"", b""], []
    for i, row in enumerate(rows):
        if row is None:
            made.append(b"\xff" * 16)
        elif len(row) <= 12:
            made.append(struct.pack("<i12s", len(row), row))
        else:
            made.append(struct.pack("<i4sii", len(row), row[:4], i % 2, len(data[i % 2])))
            data[i % 2] += row
    return b"".join(made), *data, packed("q", [len(data[0]), len(data[1])])


def encoded(layout: str, index: str, texts: list[bytes | None], before: int = 0) -> Node:
    """A dictionary of the distinct texts, one of them null where texts are missing, itself at an offset."""
    distinct = list(dict.fromkeys(texts))
    values = node(layout, distinct, before=1)
    numbers = [0] * before + [distinct.index(text) for text in texts]
    # a missing text has a null index or the index of a null value
    valid = [True] * before + [text is not None or i % 2 == 0 for i, text in enumerate(texts)]
    return Node(index, len(texts), (bitmap(valid), packed(INDICES[index], numbers)), before, dictionary=values)


def runs(index: str, texts: list[bytes | None], values: str = "u", before: int = 0, dictionary: str = "") -> Node:
    """Run-end encoded texts, sliced from a longer array, with both children at an offset."""
    rows = [b"before"] * before + texts
    starts = [i for i, row in enumerate(rows) if i == 0 or row != rows[i - 1] or i % 5 == 0]  # runs may be equal
    ends = packed(INDICES[index], [-1, *starts[1:], len(rows) + 3][: len(starts) + 1])
    found = [rows[i] for i in starts]
    held = encoded(values, dictionary, found, 2) if dictionary else node(values, found, 2)
    return Node("+r", len(texts), (), before, 0, (Node(index, len(starts), (None, ends), 1), held))


def table(*columns: Node, offset: int = 0, valid: bytes | None = None) -> Node:
    length = columns[0].length - offset if columns else 0
    return Node("+s", length, (valid,), offset, -1 if valid else 0, columns)
