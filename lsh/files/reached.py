"""How far the first reading of files has come, so that another process can go on with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from lsh.base.arrays import Array


@dataclass
class Reached:
    """What is known of the files so far: values that a journal can have.

    The lists have an element for each file or document, of which only the last one changes. All other values are
    replaced.
    """

    def __post_init__(self) -> None:
        self._begin = 0  # of the elements that the next `taken` returns, or that the next `restore` replaces

    def taken(self) -> dict[str, Any]:
        """Return what is new since the last call."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        new = {name: value[self._begin :] if isinstance(value, list) else value for name, value in found.items()}
        self._go_on()
        return new

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `taken` returned in another process, call by call."""
        for name, value in state.items():
            own = getattr(self, name)
            if isinstance(own, list):
                own[self._begin :] = value
            else:
                setattr(self, name, value)
        self._go_on()

    def _go_on(self) -> None:
        size = next(len(value) for value in vars(self).values() if isinstance(value, list))  # the same for all lists
        self._begin = max(size - 1, 0)


class ReadingPass:
    """A pass over files of which another process can go on with the first reading.

    Attributes
    ----------
    reached : Reached
        How far it has come.
    """

    reached: Reached

    def taken(self) -> tuple[Any, list[Array]]:
        """Return what `restore` needs of this pass, as far as it has come: what is new since the last call."""
        return self.reached.taken(), []

    def restore(self, state: Any, arrays: Sequence[Array]) -> None:
        """Go on from where `taken` was called in another process, call by call."""
        self.reached.restore(state)

    def prepare(self) -> None:
        """After `restore`, find the columns, if the files have any."""
