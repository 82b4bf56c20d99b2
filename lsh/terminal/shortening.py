"""Documents that are written without runs of their texts, or with a field that lists these runs.

The runs are a table with ``document``, ``start`` and ``end`` in bytes of UTF-8: `lsh.Passages.cuts` or
`lsh.Contained.cuts`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import compress

import numpy as np

from lsh import files
from lsh.base.arrays import Array
from lsh.terminal import inputs, options, outputs
from lsh.terminal.inputs import TextStream
from lsh.terminal.outputs import Outputs
from lsh.terminal.rows import of_each
from lsh.text.cuts import in_characters

_NAME = re.compile(r'[^"\\\x00-\x1f\x7f\ud800-\udfff]+')  # what JSON and tables have as it is


def add_mark(parser: argparse._ActionsContainer) -> None:
    """Add the option --mark."""
    parser.add_argument(
        "--mark",
        action=options.Once,
        metavar="FIELD",
        help="write all records with their whole texts and one more field: a list of the runs that would be cut, each "
        "as [start, end] in characters of the text",
    )


def checked_mark(namespace: argparse.Namespace) -> str | None:
    """Return the field of --mark."""
    mark: str | None = namespace.mark
    if mark is not None and not _NAME.fullmatch(mark):
        rule = "must be the name of a field, without quotes, backslashes and control characters"
        raise ValueError(f"--mark {rule}, got {mark!r}")
    return mark


def check_column(reading: files.ReadOptions) -> None:
    """Check that the text is that of one column, which can be written."""
    if len(reading.text_fields() or ()) > 1:
        raise ValueError(f"--field must be one column, as texts are written with passages cut, got {reading.field}")


def check_documents(documents: files.Documents, written: Outputs, mark: str | None, table: str) -> None:
    """Check that OUTPUT and --mark suit the format of INPUT; `table` is an option that does what --mark does."""
    inputs.check_output(documents, written.output)
    if mark is not None and documents.format.name in (files.FOLDER, "txt"):
        raise ValueError(f"--mark adds a field to records, and INPUT has none; use {table}")


def write_documents(opened: ExitStack, run: outputs.OpenRun, runs: Array, emptied: Array, mark: str | None) -> None:
    """Write the documents without runs of their texts, and without those that are emptied; or all, with marks."""
    keep = np.ones(run.texts.count, np.bool_)
    if mark is not None:
        outputs.write_documents(opened, run, keep, files.Edits(_marks(runs, run.texts)))
    else:
        keep[emptied] = False
        outputs.write_documents(opened, run, keep, files.Edits(cuts=_cuts(runs, keep)))


def _by_document(table: Array) -> tuple[Array, Iterator[Array]]:
    """Return the documents from which something is cut, and the runs of each: int64, shape ``(c, 2)``."""
    documents, starts = np.unique(table["document"], return_index=True)
    runs, stops = np.stack([table["start"], table["end"]], 1), [*starts[1:].tolist(), len(table)]
    return documents, (runs[start:stop] for start, stop in zip(starts.tolist(), stops))


def _cuts(table: Array, keep: Array) -> Iterator[Array | None]:
    """Return what is cut from each kept document, ``None`` for nothing."""
    documents, runs_of_each = _by_document(table)
    return compress(of_each(len(keep), zip(documents.tolist(), runs_of_each)), keep)


def _marks(table: Array, texts: TextStream) -> Iterator[list[bytes]]:
    """Yield the field of --mark for each document; the texts that have runs are read again."""
    documents, runs_of_each = _by_document(table)
    shown = (
        (document, json.dumps(in_characters(record.text or b"", runs).tolist()).encode())
        for runs, (document, record) in zip(runs_of_each, texts.at(documents))
    )
    return ([value or b"[]"] for value in of_each(texts.count, shown))
