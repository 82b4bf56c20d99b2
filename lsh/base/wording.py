"""Numbers as text: with a noun, as a time, as a size in bytes."""

from __future__ import annotations

SIZES = ("bytes", "KB", "MB", "GB", "TB", "PB")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``"2,500 documents"``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """Return a time in whole seconds, such as ``"1:05:00"`` or ``"0:07"``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def size(number: int) -> str:
    """Return a number of bytes in units of a thousand, such as ``"16.7 MB"``."""
    value, power = float(number), 0
    while value >= 999.5 and power < len(SIZES) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.3g} {SIZES[power]}"
