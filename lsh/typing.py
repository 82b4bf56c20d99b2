"""Types for annotations of programs that use the package: ``def read() -> lsh.typing.Texts``.

They are the names in the signatures of the public functions. Nothing here is needed to run a program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lsh.base.progress import Progress
from lsh.text.batch import Batch
from lsh.text.columns import Column

__all__ = [
    "Array",
    "ArrowArray",
    "ArrowStream",
    "Clusters",
    "Decision",
    "DocId",
    "Fingerprint",
    "Fingerprints",
    "Floats",
    "FoundId",
    "HashBytes",
    "Indexed",
    "Keep",
    "Lookup",
    "Missing",
    "NormalForm",
    "Numbers",
    "PassageUnit",
    "PresetName",
    "Progress",
    "RuleName",
    "Scheme",
    "Sketch",
    "SupportsArray",
    "Table",
    "Text",
    "TextStream",
    "Texts",
    "TextsByPosition",
    "TextsOrCallable",
    "Time",
    "Unit",
    "Verify",
]

Piece = tuple[Any, ...] | Column | Batch  # of a collection of texts; see `lsh.text.collections`


class Pieces(NamedTuple):
    """Texts that are already in pieces; not public."""

    pieces: Iterator[Piece]


# ---- texts ----


class ArrowArray(Protocol):
    """An Arrow array: an object with ``__arrow_c_array__``."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


class ArrowStream(Protocol):
    """A stream of Arrow arrays, such as a column: an object with ``__arrow_c_stream__``."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Indexed(Protocol):
    """A list, an array or a column with one value for each document, by position."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> object: ...

    def __iter__(self) -> Iterator[object]: ...


#: One text.
Text = str | bytes | bytearray | memoryview
#: A collection of texts: an iterable, a numpy array, an Arrow column, or an iterable of Arrow columns.
Texts = Iterable[Text | None] | Iterable[ArrowArray | ArrowStream] | ArrowArray | ArrowStream | Batch
#: A collection of texts, or a function that returns it anew at each call.
TextsOrCallable = Texts | Callable[[], Texts | Pieces]
#: Values by the position of their document; a mapping needs those that are asked for only.
TextsByPosition = Indexed | Mapping[int, object]
#: A function that returns all texts anew at each call, for `lsh.report.html`.
TextStream = Callable[[], Iterable[object] | Texts]
#: What to do with a missing text.
Missing = Literal["error", "empty"]
#: The unit of a shingle.
Unit = Literal["byte", "char", "word"]
#: A normal form of Unicode.
NormalForm = Literal["NFC", "NFKC"]

# ---- fingerprints and bands ----


class SupportsArray(Protocol):
    """An object that numpy converts to an array, such as an array or a column of pandas."""

    def __array__(self) -> np.ndarray[Any, Any]: ...


#: A fingerprint, or a matrix of fingerprints, as they are computed.
Array = NDArray[np.uint32 | np.uint64]
#: A fingerprint as an argument: an array, or a sequence of whole numbers.
Fingerprint = SupportsArray | Sequence[int]
#: Many fingerprints as an argument: a matrix, or a sequence of fingerprints.
Fingerprints = SupportsArray | Sequence[SupportsArray | Sequence[int]]
#: How components of a fingerprint are computed.
Scheme = Literal["murmur3", "fss"]
#: Bytes of a component.
HashBytes = Literal[4, 8]
#: Several numbers as an argument.
Numbers = Sequence[float] | SupportsArray
#: An array of numbers in a result.
Floats = NDArray[np.float64]

# ---- near duplicates ----

#: Which one of several near duplicates to keep.
Keep = Literal["first", "last", "longest"]
#: How near duplicates are grouped.
Clusters = Literal["representative", "components"]
#: When a candidate pair is a near duplicate.
Verify = Literal["exact", "sketch", None]
#: A table of a `lsh.Deduplication`.
Table = Literal["removed", "near", "clusters", "documents"]
#: What a repeated passage is.
PassageUnit = Literal["bytes", "line", "paragraph"]
#: The name of a preset.
PresetName = Literal["fineweb", "bigcode", "nemo"]
#: The name of a published rule of decontamination.
RuleName = Literal["gpt3", "palm", "gpt4", "deepseekmath", "tulu3", "datatrove", "openr1"]

# ---- indexes ----

#: The id of a document of an index.
DocId = str | bytes | int
#: An id in a result. It is ``Any``, so that it can be used as what was given as an id.
FoundId = Any
#: The time of a document: seconds since 1970, a datetime with a time zone, or a numpy.datetime64.
Time = float | datetime | np.datetime64
#: A function that returns the text of an id, or ``None``. Its argument is ``Any``, as ids are often of one type only.
Lookup = Callable[[Any], "str | bytes | None"]
#: What an index stores to estimate similarities.
Sketch = Literal["8bit", "full"]
#: The decision of a `lsh.Screen`.
Decision = Literal["accept", "similar", "reject"]
