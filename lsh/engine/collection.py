"""Collections of texts that are read twice: in memory, or from a callable that returns them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lsh.base import errors
from lsh.base.arrays import Array
from lsh.text.batch import Batch, content_keys, extent
from lsh.text.collections import TextSource, each_piece, is_selection
from lsh.typing import Piece, Pieces, Progress, Texts, TextsOrCallable

ENCODED = 1 << 24  # bytes of texts of a list that are read again at once
MAX_PIECE = 1 << 12  # texts in a piece of an iterator


def between(ascending: Array, start: int, stop: int) -> slice:
    """Return the slice of the values from start to stop - 1."""
    bounds = np.array([start, stop], ascending.dtype)  # with another dtype numpy would convert the whole array
    return slice(*np.searchsorted(ascending, bounds).tolist())


class Collection:
    """A collection of texts that can be read twice: one in memory, or a callable that returns it again at each call.

    Parameters
    ----------
    name : str
        The parameter that it was passed as, for messages.
    collection : object
        A collection that `lsh.text.collections.pieces` accepts, or a callable that returns one.
    missing : bool
        Whether a text may be ``None``.
    """

    def __init__(self, name: str, collection: TextsOrCallable | None, missing: bool) -> None:
        self.name, self.missing = name, missing
        self._again: Callable[..., Texts | Pieces] | None = None
        self._held: list[Piece] = []
        self.size: int | None = None  # known from the start, or after the first reading
        if isinstance(collection, type):
            raise errors.bad_type(
                name, f"must be a collection of texts, got the class {collection.__name__}; pass an object"
            )
        self._called = f"{name}()" if callable(collection) else name
        if callable(collection):
            self._again = collection
        elif is_selection(collection):
            selected: Any = collection
            self._again, self.size = lambda: selected, len(selected)
        else:
            self._held = list(each_piece(name, collection, MAX_PIECE))
            self.size = sum(map(len, self._held))

    def pieces(self, first: int = 0) -> Iterator[tuple[int, Piece]]:
        """Yield the position of each piece and the piece, from a position on, at most `num_known`."""
        texts = () if self._again is None else self._again(first) if self.num_known else self._again()
        for piece in self._held if self._again is None else each_piece(self._called, texts, MAX_PIECE):
            yield first, piece
            first += len(piece)
            if self.size is not None and first > self.size:  # at once: it may give texts without end
                raise self._other_number("more")
        if self.size is None:
            self.size = first
        elif self.size != first:
            raise self._other_number(f"{first:,}")

    def _other_number(self, found: str) -> Exception:
        """Return the error for another number of texts than in the first reading."""
        return ValueError(
            f"{self.name} gave {self.size:,} texts at the first call and {found} at the second; a callable must give "
            "the same texts at each call"
        )

    def progress(self) -> tuple[int, int, int] | None:
        """Return how much was read, as `TextSource.progress` does; ``None`` if that is unknown."""
        return self._again.progress() if isinstance(self._again, TextSource) else None

    @property
    def tells_progress(self) -> bool:
        """Whether `progress` may be known, and its first reading must not be given up."""
        return isinstance(self._again, TextSource)

    @property
    def num_known(self) -> int:
        """How many texts were read by a run that was killed, so that the first reading need not begin with them."""
        return self._again.num_known if isinstance(self._again, TextSource) else 0

    @property
    def is_held(self) -> bool:
        """Whether the texts are in memory, so that `needed_texts` costs nothing."""
        return self._again is None

    @property
    def batches_remain(self) -> bool:
        """Whether the batches of `needed_texts` stay valid after the next one."""
        return self.is_held

    def batch(self, first: int, piece: Piece, start: int, stop: int) -> Batch:
        """Return texts start to stop - 1 of the piece that begins at position `first`."""
        return Batch(piece, first, self.missing, None, self.name, start, stop)

    def needed_texts(
        self, needed: Array, content_of: Callable[[Array], Array], secret: bytes, report: Progress
    ) -> Iterator[tuple[Array, Batch]]:
        """Yield the texts at some positions in batches, with their positions.

        Parameters
        ----------
        needed : numpy.ndarray
            int32: the positions, ascending.
        content_of : callable
            Returns the content keys of the texts at some positions, from the first reading.
        secret : bytes
            The key of the hash that computed them.
        report : callable
            For progress.

        Raises
        ------
        ValueError
            If a callable returns another text than in the first reading.
        """
        if self._again is None:
            for first, piece in self.pieces():
                chosen = needed[between(needed, first, first + len(piece))]
                if len(chosen) and isinstance(piece, tuple):
                    texts, start = tuple(map(piece.__getitem__, (chosen - first).tolist())), 0
                    while start < len(texts):  # those beyond ASCII are encoded
                        stop = extent(texts, start, len(texts), ENCODED)
                        yield (
                            chosen[start:stop],
                            Batch(texts, first, self.missing, None, self.name, start, stop),
                        )
                        start = stop
                elif len(chosen):
                    yield chosen, self.batch(first, piece, 0, len(piece)).take(chosen - first)
            return
        for positions, batch in self._again_at(needed):
            found = np.empty(len(batch), np.uint64)
            content_keys(batch, secret, found)
            changed = np.flatnonzero(found != content_of(positions))
            if len(changed):
                raise self._changed(int(positions[changed[0]]))
            chosen = needed[between(needed, int(positions[0]), int(positions[-1]) + 1)]
            if len(chosen):
                yield chosen, batch.take(np.searchsorted(positions, chosen))
            report("texts", int(positions[-1]) + 1, self.size)
        if isinstance(self._again, TextSource):  # all of it is read now
            report("texts", self.size or 0, self.size)

    def _changed(self, position: int) -> Exception:
        """Return the error for a text that was another one in the first reading."""
        if isinstance(self._again, TextSource):
            return self._again.changed(position)
        return ValueError(
            f"{self.name}[{position}] differs between the first and the second call; a callable must give the same "
            "texts at each call"
        )

    def _again_at(self, needed: Array) -> Iterator[tuple[Array, Batch]]:
        """Yield texts of the callable in batches, with their positions: those at `needed`, or all."""
        if isinstance(self._again, TextSource):
            done = 0
            for batch in self._again.take(needed):
                positions = needed[done : done + len(batch)]
                done += len(batch)
                yield positions, batch
            if done < len(needed):
                raise self._changed(int(needed[done]))
            return
        for first, piece in self.pieces():
            count = min(len(piece), (self.size or 0) - first)  # more texts are an error afterwards
            if count > 0:
                yield np.arange(first, first + count, dtype=needed.dtype), self.batch(first, piece, 0, count)


def expected_documents(collections: list[Collection]) -> int | None:
    """Return how many documents there will be, by the part of the files that was read; ``None`` if unknown."""
    texts = done = total = known = 0
    for collection in collections:
        progress = collection.progress()
        if collection.size is not None:
            known += collection.size
        elif progress is None or 0 in progress[:2]:
            return None
        else:
            texts, done, total = texts + progress[0], done + progress[1], total + progress[2]
    return known + (texts * total // done if done else 0)
