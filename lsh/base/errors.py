"""Errors as data: a message knows which parameters it names, so that a command can name its own options instead.

A message is made of text and of `Parameter` values, put together with ``+``; as text it has Python's names. No code
looks into the text of a message: `words_of` returns what an error says, and an error about a parameter has the
attributes `parameter` (its name) and `reason` (the rest of the sentence).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

Kind = TypeVar("Kind", bound=BaseException)


class HeldMemoryError(MemoryError):
    """There is not enough memory for what a function holds; the message has the remedy."""


@dataclass(frozen=True)
class Parameter:
    """A parameter in a message, and maybe a value of it: that of a function or, in `lsh.files`, of `ReadOptions`.

    Examples
    --------
    >>> str("use " + Parameter("missing", "empty") + ", or more " + Parameter("num_seeds", 200))
    "use missing='empty', or more num_seeds=200"
    """

    name: str
    value: str | bool | float | None = None

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        value = f"{self.value:g}" if isinstance(self.value, float) else repr(self.value)
        return f"{self.name}={value}"

    def __add__(self, other: Words) -> Message:
        return Message((self,)) + other

    def __radd__(self, other: str) -> Message:
        return Message((other, self))


@dataclass(frozen=True)
class Message:
    """Text with parameters in it."""

    parts: tuple[str | Parameter, ...]

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    def __add__(self, other: Words) -> Message:
        return Message((*self.parts, *(other.parts if isinstance(other, Message) else (other,))))

    def __radd__(self, other: str) -> Message:
        return Message((other, *self.parts))

    def worded(self, word: Callable[[Parameter], str]) -> str:
        """Return the text with `word` of each parameter."""
        return "".join(part if isinstance(part, str) else word(part) for part in self.parts)

    def renamed(self, name: str, other: str) -> Message:
        """Return the message with another name of a parameter."""

        def part_of(part: str | Parameter) -> str | Parameter:
            if isinstance(part, Parameter) and part.name == name:
                return Parameter(other, part.value)
            return part

        return Message(tuple(map(part_of, self.parts)))


Words = str | Parameter | Message


def message(words: Words) -> Message:
    """Return words as a message."""
    return words if isinstance(words, Message) else Message((words,))


def saying(error: Kind, words: Words) -> Kind:
    """Return an error with the message that it says, for `words_of`."""
    vars(error)["message"] = message(words)
    return error


def words_of(error: BaseException) -> Message | str:
    """Return what an error says: its message or, for an error of other code, its text; of a system error the cause."""
    found = getattr(error, "message", None)
    if isinstance(found, Message):
        return found
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def bad_value(parameter: str | Parameter, reason: Words, kind: type[ValueError] = ValueError) -> ValueError:
    """Return the error about the value of a parameter.

    Examples
    --------
    >>> error = bad_value("recall", "must be less than 1, got 1.0")
    >>> str(error), error.parameter, error.reason
    ('recall must be less than 1, got 1.0', 'recall', 'must be less than 1, got 1.0')
    """
    return _about(kind, parameter, reason)


def bad_type(parameter: str | Parameter, reason: Words) -> TypeError:
    """Return the error about the type of a parameter."""
    return _about(TypeError, parameter, reason)


def _about(kind: type[Kind], parameter: str | Parameter, reason: Words) -> Kind:
    named = Parameter(parameter) if isinstance(parameter, str) else parameter
    words = named + " " + reason
    error = saying(kind(str(words)), words)
    vars(error).update(parameter=named.name, reason=str(reason))
    return error


@contextmanager
def needing(remedy: str) -> Iterator[None]:
    """Say in the error of a package that is not installed who needs it, and how to install it."""
    try:
        yield
    except ImportError as error:
        raise ImportError(remedy) from error


class InputError(ValueError):
    """Bad input; the message names the file, and the line if it is malformed.

    Attributes
    ----------
    message : Message
        With the options of reading that would help, as `Parameter` values.
    lacks : str or None
        The option that names a column which the file does not have.
    """

    def __init__(self, name: str, problem: Words, line: int | None = None, lacks: str | None = None) -> None:
        self.message = (f"{name}, line {line}: " if line else f"{name}: ") + message(problem)
        self.lacks = lacks
        super().__init__(str(self.message))
