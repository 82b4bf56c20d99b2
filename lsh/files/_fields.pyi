from typing import Any

import numpy as np

from lsh._batch import Batch

Spans = np.ndarray[Any, np.dtype[np.int64]]

def count_lines(block: bytes) -> int: ...
def read_ranges(file: int, begins: Spans, ends: Spans) -> bytes: ...
def json_fields(
    block: bytes, texts: tuple[bytes, ...], names: tuple[bytes, ...]
) -> tuple[list[Batch], list[Batch | None], Spans] | None: ...
def line_cells(
    block: bytes, separator: bytes, places: tuple[int, ...], least: int, most: int
) -> tuple[list[Batch], Spans] | None: ...
def csv_cells(
    block: bytes, separator: bytes, places: tuple[int, ...], least: int, most: int
) -> tuple[list[Batch], Spans, int] | None: ...
