"""gzip, bzip2, xz and zstd: several streams are one file, and corrupt data are an error."""

import io as streams
import random
import re
import sys
from contextlib import suppress

import pytest
from reading import DOCUMENTS, HEADS, TEXTS, file_of, kept, pack, refusal, texts

from lsh import files
from lsh.storage import compression

every_format = pytest.mark.parametrize("format", ["gz", "bz2", "xz", "zst"])


@pytest.mark.few(1)
@every_format
def test_truncated_anywhere(tmp_path, format):
    data = pack(b"".join(b"%d and %d\n" % (i, i * i) for i in range(2000)), format)
    for size in [*range(40), *range(40, len(data) - 40, 97), *range(len(data) - 40, len(data))]:
        message = refusal(file_of(tmp_path, f"in.txt.{format}", data[:size]))
        assert f"in.txt.{format}: corrupt {compression.NAMES[format]} data after byte " in message
        assert message.endswith("; create it anew")
        assert int(re.search(r"after byte ([\d,]+)", message)[1].replace(",", "")) <= size


@every_format
def test_several_streams_are_one_file_and_what_else_follows_an_error(tmp_path, format):
    path = file_of(tmp_path, f"in.txt.{format}", pack(b"one\ntw", format) + pack(b"", format) + pack(b"o\n", format))
    assert texts(path) == [b"one", b"two"]
    for tail in (b"and more", b"B", b"\x1f"):
        assert "corrupt" in refusal(file_of(tmp_path, f"in.txt.{format}", pack(b"one\n", format) + tail))


@pytest.mark.parametrize("format", ["gz", "xz"])
def test_padding_is_allowed(tmp_path, format):
    path = file_of(
        tmp_path, f"in.txt.{format}", pack(b"one\n", format) + bytes(200_000) + pack(b"two\n", format) + bytes(8)
    )
    assert texts(path) == [b"one", b"two"]


@every_format
def test_names_that_say_another_compression(tmp_path, format):
    assert f"--format txt.{format}" in refusal(file_of(tmp_path, "in.txt", pack(b"one\n", format)))
    message = refusal(file_of(tmp_path, f"in.txt.{format}", b"a text that is not compressed\n"))
    assert message.endswith(f"in.txt.{format}: it is not compressed, in spite of its name; give --format txt")


@pytest.mark.few(1)
@every_format
def test_little_is_unpacked_at_once(tmp_path, format):
    """64 MB of zeros, which are a few KB when compressed, are unpacked in pieces."""
    packed = streams.BytesIO(pack(bytes(1 << 26), format))
    file = compression.unpacked(packed, format)
    assert file.read(1 << 16) == bytes(1 << 16)
    assert packed.tell() <= compression.PACKED
    assert len(file.read()) == (1 << 26) - (1 << 16)


@pytest.mark.parametrize("name", ["in.txt.zst", "in.parquet", "in.arrow", "in.feather"])
def test_without_its_package_a_format_names_the_extra(tmp_path, monkeypatch, name):
    for package in ("pyarrow", "zstandard"):
        monkeypatch.setitem(sys.modules, package, None)
    path = file_of(tmp_path, name, b"")
    for opened in (files.Documents, files.Target) if name.endswith("zst") else (files.Documents,):
        with pytest.raises(ImportError, match=r"lsh-dedup\[io\]"):
            opened(path)


@pytest.mark.parametrize("format", DOCUMENTS)
@pytest.mark.parametrize("name", ["in.{}", "in.dat", "in", "in.gz"])
def test_a_given_format_wins_over_the_name(tmp_path, format, name, packed):
    data = pack(HEADS.get(format, b"") + b"".join(DOCUMENTS[format]), packed)
    given = files.Format.from_string(f"{format}.{packed}".rstrip("."))
    assert texts(file_of(tmp_path, name.format(format), data), given) == TEXTS[format]


@pytest.mark.few(1)
@every_format
def test_damage_in_an_output_is_noticed(tmp_path, format):
    """Each has a checksum: a byte with another value is an error, or changes no text."""
    pack(b"", format)  # skips where the format's library is missing
    draw = random.Random(0)
    expected = [draw.randbytes(40).hex().encode() for _ in range(40)]
    path = file_of(tmp_path, "in.txt", b"\n".join(expected) + b"\n")
    data = kept(path, [True] * 40, tmp_path / f"out.txt.{format}")
    assert texts(str(tmp_path / f"out.txt.{format}")) == expected
    for at in range(len(data) // 2, len(data) // 2 + 200):
        damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        path = file_of(tmp_path, f"damaged.txt.{format}", damaged)
        with suppress(files.InputError):  # but a bit that the format does not use changes nothing
            assert texts(path) == expected
            continue
        assert "corrupt" in refusal(path)


def test_gzip_has_no_time_and_a_level_between_the_ends():
    """So the same records give the same bytes at any time."""
    found = streams.BytesIO()
    packing = compression.Packing(found, "gz")
    packing.write(memoryview(b"a cat sat on a mat"))
    packing.finish()
    assert found.getvalue()[:9] == b"\x1f\x8b\x08" + bytes(6)
