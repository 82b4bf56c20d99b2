"""Writing in a thread, a few pieces behind."""

import threading

import pytest

from lsh.storage import behind


@pytest.mark.parametrize("sizes", [(), (5, 7), (behind.PIECE,) * 9, (3, 8 * behind.PIECE, 1)])
def test_all_bytes_in_order(sizes):
    found, data = [], [bytes([number]) * size for number, size in enumerate(sizes)]
    writer = behind.WriteBehind(found.append)
    for piece in data:
        changed = bytearray(piece)
        writer.write(changed)
        changed[:] = b"x" * len(changed)
    writer.finish()
    assert b"".join(found) == b"".join(data)
    assert (max(map(len, found)) > behind.PIECE) == (max(sizes, default=0) > behind.PIECE)


def test_an_error_is_raised_once_more_and_ends_writing():
    calls = []

    def write(data):
        calls.append(len(data))
        raise OSError(28, "full")

    writer, before = behind.WriteBehind(write), threading.active_count()
    with pytest.raises(OSError, match="full"):
        list(map(writer.write, [bytes(behind.PIECE)] * 99))
    with pytest.raises(OSError, match="full"):
        writer.finish()
    writer.stop()
    assert calls == [behind.PIECE]
    assert threading.active_count() == before
