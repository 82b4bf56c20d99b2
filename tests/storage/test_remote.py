"""Files that URLs name, without a server of S3: ``memory://``, ``file://``, and a local server of the web."""

import functools
import gzip
import http.server
import io
import itertools
import random
import re
import string
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
import strategies
from full_disk import Full
from hypothesis import given
from hypothesis import strategies as st
from reading import write_records
from running import contents, done, lsh, refused

from lsh import files
from lsh.storage import remote, urls

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")

STORY = "the ferry left the harbour at nine with two hundred passengers and a brass band on board"
OTHER = "growers in the valley expect a poor year for pears since the frost came late in the spring"
LINES = f"a\t{STORY}\nb\t{OTHER}\nc\t{STORY.replace('nine', 'nina')}\nd\t{OTHER}\n".encode()
KEPT = b"".join(LINES.splitlines(keepends=True)[:2])
SECRETS = ("hunter2", "0a1b2c3d", "t0psecret")


@pytest.fixture
def memory():
    """The empty filesystem of memory:// URLs."""
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    return filesystem


def stored(memory) -> dict[str, bytes]:
    return {name: memory.cat_file(name) for name in sorted(memory.store)}


# ---- names ----


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://ann:hunter2@example.org/a.csv", "https://***@example.org/a.csv"),
        ("https://ann:hunter2/t0psecret@example.org/a.csv", "https://***@example.org/a.csv"),
        ("https://example.org:8080/day@1/a.csv", "https://example.org:8080/day@1/a.csv"),
        ("https://example.org/a.csv?X-Amz-Signature=0a1b2c3d&b=1", "https://example.org/a.csv?***"),
        ("https://example.org/a.csv#t0psecret", "https://example.org/a.csv#***"),
        ("s3://key:hunter2@bucket/a.csv", "s3://***@bucket/a.csv"),
        ("az://box/a.csv?sv=2024&sig=0a1b2c3d", "az://box/a.csv?***"),
        ("s3://bucket/part-?.csv", "s3://bucket/part-?.csv"),
        ("hf://datasets/ann/news@main/a.csv", "hf://datasets/ann/news@main/a.csv"),
        ("what?token=1", "what?token=1"),
    ],
)
def test_a_shown_url_has_no_secret(url, expected):
    assert urls.shown(url) == expected
    assert not any(secret in urls.shown(url) for secret in SECRETS)


@strategies.examples(200)
@given(
    st.text(string.ascii_letters + string.digits + "/:=+%", min_size=6).filter(lambda text: "@" not in text),
    st.text(string.ascii_letters + string.digits + "/=&+%", min_size=6),
)
def test_no_password_and_no_query_is_ever_shown(password, query):
    password, query = f"PW:{password}", f"q={query}"
    found = urls.shown(f"https://ann:{password}x@example.org/a.csv?{query}")
    assert found == "https://***@example.org/a.csv?***"


@pytest.mark.parametrize(
    "message",
    [
        "403, message='Forbidden', url='https://example.org/a?sig=0a1b2c3d'",
        "InvalidAccessKeyId: the access key: 0a1b2c3d does not exist",
        "bad token=t0psecret; SecretAccessKey=hunter2",
        "Authorization: signature 0a1b2c3d is wrong",
        '{"password": "hunter2"}',
    ],
)
def test_a_message_of_a_package_is_cleaned(message):
    found = urls.cleaned(message)
    assert not any(secret in found for secret in SECRETS), found
    assert found != message


@pytest.mark.parametrize("name", ["C:/news.jsonl", "c://news.jsonl", "day:1.jsonl", "a:b://c", "://x", "news"])
def test_other_names_are_no_urls(name):
    assert not files.is_url(name)
    assert files.local(name) == files.shown(name) == name


SLASHES = "a file:// URL has three slashes before the path, such as file:///data/news.jsonl"
UNKNOWN = "zz:// is not a known kind of URL; use s3://, gs://, hf://, https:// or a local path"


def test_fsspec_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    message = refused(tmp_path, "stats", "s3://box/a.tsv?versionId=t0psecret")
    assert message == 'lsh: error: s3://box/a.tsv?***: URLs need fsspec; run pip install "lsh-dedup[io]"'


def test_a_file_url_is_the_local_file(tmp_path):
    (tmp_path / "two words.tsv").write_bytes(LINES)
    base = f"file://{tmp_path}"
    done(tmp_path, "dedup", f"{base}/two%20words.tsv", "-o", f"{base}/out.tsv", "--removed", f"{base}/removed.tsv")
    assert (tmp_path / "out.tsv").read_bytes() == KEPT
    assert (tmp_path / "removed.tsv").exists()
    done(tmp_path, "dedup", f"{base}/*words.tsv", "-o", f"file://localhost{tmp_path}/folder/")
    assert contents(tmp_path / "folder") == {"two words.tsv": KEPT}
    assert done(tmp_path, "compare", f"{base}/out.tsv", "out.tsv").startswith(b"exact     1.000000")
    message = refused(tmp_path, "dedup", "two words.tsv", "-o", f"{base}/two%20words.tsv")
    assert "OUTPUT must not be INPUT" in message


# ---- memory:// ----


def write_texts(path: Path, texts: list[str]) -> None:
    rows = [{"id": str(i), "text": text} for i, text in enumerate(texts)]
    write_records(path, rows, header=".tsv" not in path.name)


TEXTS = {"a.txt": STORY, "deep/b.txt": OTHER, "deep/c.txt": STORY.replace("nine", "nina"), "d.md": "something else"}


INPUTS = {
    **{f"texts/{name}": text.encode() for name, text in TEXTS.items()},
    "in.tsv": LINES,
    "a.txt": STORY.encode(),
    "b.txt.gz": gzip.compress(STORY.encode()),
    "bad.jsonl": b'{"text": "a"}\nnot json\n',
    "texts/.hidden.txt": b"hidden",
    "old/1.tsv": LINES.splitlines(keepends=True)[0],
    "old/2.tsv": b"z\tanother text\n",
    "shards/part-1.tsv": LINES,
    "shards/part-2.tsv": LINES + b"e\tone more text for the second file\n",
}
COMMANDS = [
    "stats IN/in.tsv",
    "show IN/in.tsv a c",
    "plan --sample IN/in.tsv",
    "pairs IN/in.tsv -o OUT/pairs.tsv",
    "compare IN/a.txt IN/b.txt.gz",
    "dedup IN/bad.jsonl -o OUT/out.jsonl --on-bad-line skip --rejects OUT/rejects.txt",
    "dedup IN/in.tsv --against IN/old -o OUT/out.tsv",
    "dedup IN/texts -o OUT/kept --removed OUT/removed.tsv",
    *(f"dedup IN/shards{end} -o OUT/deep/er/ --id-field none" for end in ("", "/", "/**", "/part-*.tsv")),
    *(f"dedup IN/many.{form} -o OUT/out.{form} --clusters OUT/c.tsv" for form in ["tsv", "tsv.gz", "tsv.xz", "csv"]),
    *(f"dedup IN/many.{form} -o OUT/out.{form} --clusters OUT/c.tsv" for form in ("jsonl", "parquet", "arrow")),
]


@pytest.mark.few(12)
@pytest.mark.parametrize("line", COMMANDS)
@pytest.mark.parametrize(
    ("source", "out"), [("memory://in", "memory://out"), ("memory://in", "out"), ("in", "memory://out")]
)
def test_a_url_gives_what_a_local_name_gives(tmp_path, memory, line, source, out):
    for name, data in INPUTS.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(data)
    for name in ("local", "out"):
        (tmp_path / name).mkdir()
    if "many" in line:
        draw = random.Random(1)
        texts = [" ".join(draw.choices(STORY.split(), k=40)) for _ in range(3000)]
        write_texts(tmp_path / line.split()[1].replace("IN", "in"), texts + draw.sample(texts, 300))
    memory.put(str(tmp_path / "in"), "/in", recursive=True)
    found = []
    for start, end in (("in", "local"), (source, out)):
        ran = lsh(tmp_path, *line.replace("IN", start).replace("OUT", end).split())
        assert ran.returncode == 0, ran.stderr
        found.append((ran.stdout.replace(b"memory://", b""), b"1 hidden file not read" in ran.stderr))
    written = [{name: data for name, data in contents(tmp_path / end).items() if data} for end in ("local", "out")]
    written[1] |= {name[5:]: data for name, data in stored(memory).items() if name.startswith("/out/")}
    assert (found[0], written[0]) == (found[1], written[1])
    assert bool(written[0]) == ("OUT" in line)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (["memory://in/a.tsv", "-o", "memory://in/a.tsv"], "OUTPUT must not be INPUT (memory://in/a.tsv)"),
        (["memory://in/a.tsv", "-o", "memory:///in/a.tsv"], "OUTPUT must not be INPUT (memory:///in/a.tsv)"),
        (["memory://in", "-o", "memory://in/out.tsv"], "OUTPUT must not lie in INPUT (memory://in)"),
        (["memory://in", "-o", "memory://full/"], "OUTPUT must be a new or an empty folder, got memory://full/"),
        (["memory://in/a.tsv", "-o", "memory://o.tsv", "--removed", "memory:///o.tsv"], "--removed must not be OUTPUT"),
        (["memory://in/none.tsv", "-o", "out.tsv"], "memory://in/none.tsv: No such file or directory"),
        *(
            ([url, "-o", "out.tsv"], f"{url}: {problem}")
            for url, problem in (("zz://x/a", UNKNOWN), ("file://other/data/a.tsv", SLASHES), ("file://a.tsv", SLASHES))
        ),
        (
            ["memory://in/a.tsv", "-o", "https://example.org/a.tsv?sig=1"],
            "https://example.org/a.tsv?***: https:// can only be read; write to a local file",
        ),
    ],
)
def test_refused(tmp_path, memory, line, problem):
    memory.pipe({"/in/a.tsv": LINES, "/full/x.tsv": LINES})
    before = stored(memory)
    message = refused(tmp_path, "dedup", *line)
    assert f"lsh: error: {problem}" in message
    assert stored(memory) == before


@pytest.mark.parametrize("out", ["memory://out.tsv", "memory://out/"])
def test_nothing_appears_after_an_error(tmp_path, memory, monkeypatch, out):
    memory.pipe({"/in/a.tsv": LINES, "/in/b.tsv": b"x\tanother text altogether\n"})
    before = stored(memory)

    def fail(documents, keep, target, *more):
        with target.part(0) as part:
            part.write(b"some data")
        raise OSError("the disk of the input broke")

    monkeypatch.setattr(files, "write_kept", fail)
    assert refused(tmp_path, "dedup", "memory://in", "-o", out) == "lsh: error: the disk of the input broke"
    assert stored(memory) == before


def test_shards_disappear_if_one_cannot_be_written(tmp_path, memory, monkeypatch):
    memory.pipe({"/in/a.tsv": LINES, "/in/b.tsv": b"x\tanother text altogether\n"})
    before, put = stored(memory), type(memory).put_file

    def fail(self, source, name, **options):
        if name.endswith("b.tsv"):
            raise RuntimeError("quota of secret_key=hunter2 is used up")
        return put(self, source, name, **options)

    monkeypatch.setattr(type(memory), "put_file", fail)
    message = refused(tmp_path, "dedup", "memory://in", "-o", "memory://out/")
    assert message == "lsh: error: memory://out/b.tsv: RuntimeError: quota of secret_key=*** is used up"
    assert stored(memory) == before


def test_a_change_between_readings_is_an_error(memory):
    memory.pipe_file("/a.tsv", LINES)
    with files.Documents("memory://a.tsv") as documents:
        assert len(list(documents.records())) == 4
        memory.pipe_file("/a.tsv", LINES.replace(b"ferry", b"ferrx"))
        with pytest.raises(files.InputError, match=r"memory://a\.tsv: it changed while it was read"):
            list(documents.records())


@pytest.mark.parametrize("out", ["memory://out/", "memory://out.tsv"])
def test_temporary_files_are_in_the_given_folder(tmp_path, memory, monkeypatch, out):
    """Data of an output are in --temp-dir before they are sent, not in TMPDIR."""
    memory.pipe({"/in/a.tsv": LINES, "/in/b.tsv": b"x\tanother text altogether\n"})
    (tmp_path / "own").mkdir()
    folders, create = [], tempfile.TemporaryFile

    def noted(**given):
        folders.extend([given["dir"]] if given else [])  # without arguments it is that of `running`
        return create(**given)

    monkeypatch.setattr(tempfile, "TemporaryFile", noted)
    line = ["--removed", "memory://r.tsv", "--report", "memory://r.html", "--on-bad-line", "skip"]
    line += ["--rejects", "memory://rejects.txt", "--temp-dir", "own"]
    done(tmp_path, "dedup", "memory://in", "-o", out, *line)
    assert len(folders) == (5 if out.endswith("/") else 4)
    done(tmp_path, "pairs", "memory://in/a.tsv", "-o", "memory://pairs.tsv", "--temp-dir", "own")
    assert set(folders) == {"own"}
    assert contents(tmp_path) == {"own": None}


def test_a_full_temporary_folder_of_an_output(tmp_path, memory, monkeypatch):
    """The message names the folder of the temporary file, the URL that needs it, and the option."""
    memory.pipe_file("/in.tsv", LINES)
    (tmp_path / "own").mkdir()
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **given: Full(io.BytesIO(), 0) if given else io.BytesIO())
    message = refused(tmp_path, "dedup", "memory://in.tsv", "-o", "memory://out.tsv", "--temp-dir", "own")
    problem = "the data of memory://out.tsv needs temporary files: No space left on device"
    assert message == f"lsh: error: own: {problem}; set --temp-dir to another folder"
    assert sorted(stored(memory)) == ["/in.tsv"]


def test_texts_whose_size_is_not_told(tmp_path, memory, monkeypatch):
    """As of a server of the web that sends no length."""
    memory.pipe({"/in/a.txt": STORY.encode(), "/in/b.txt": OTHER.encode()})
    info = type(memory).info
    monkeypatch.setattr(type(memory), "info", lambda self, path, **named: {**info(self, path, **named), "size": None})
    assert list(remote.contents(["memory://in/a.txt", "memory://in/b.txt"])) == [STORY.encode(), OTHER.encode()]
    with files.Documents("memory://in/a.txt", format=files.Format("txt", "")) as documents:
        assert [record.text for record in documents.records()] == [STORY.encode()]
        assert documents.size == len(STORY)


# ---- ranges ----


@strategies.examples(150)
@given(st.data())
def test_reading_in_any_order(data):
    whole = bytes(random.Random(4).randbytes(3000))
    fsspec.filesystem("memory").pipe_file("/order", whole)
    twin = io.BytesIO(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote, "BLOCK", data.draw(st.integers(1, 900)))
        patch.setattr(remote, "BUFFER", data.draw(st.integers(1, 300)))
        patch.setattr(remote, "GAP", data.draw(st.integers(0, 500)))
        with remote.RemoteFile("memory://order").opened() as file:
            for _ in range(data.draw(st.integers(1, 8))):
                if data.draw(st.booleans()):
                    place, whence = data.draw(st.integers(0, 3100)), data.draw(st.sampled_from([0, 2]))
                    place = place if whence == 0 else -min(place, 3000)
                    assert file.seek(place, whence) == twin.seek(place, whence)
                size = data.draw(st.integers(0, 1500))
                assert file.read(size) == twin.read(size)
                assert file.tell() == twin.tell()


@strategies.examples(200)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 90)), min_size=1, max_size=5), min_size=1),
    st.integers(1, 100),
    st.integers(0, 40),
)
def test_requests_hold_the_parts(steps, block, gap):
    """The ranges that are asked for begin and end with the parts, too, ascend, and have up to `block` bytes."""
    at, parts = 0, []
    for some in steps:
        parts.append([])
        for skipped, size in some:
            parts[-1].append((at + skipped, at + skipped + size))
            at += skipped + size
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote, "BLOCK", block)
        patch.setattr(remote, "MAX_JOINED", gap)
        ranges = list(remote.requests([np.array(part).T for part in parts]))
        data = random.Random(at).randbytes(at)
        fsspec.filesystem("memory").pipe_file("/parts", data)
        found = list(remote.RemoteFile("memory://parts").parts([np.array(part).T for part in parts]))
    expected = [(part[-1][1], b"".join(data[begin:end] for begin, end in part)) for part in parts]
    assert found == expected
    wanted = [(begin, end) for part in parts for begin, end in part]
    assert all(0 < stop - start <= block for start, stop in ranges)
    assert all(stop <= start for (_, stop), (start, _) in itertools.pairwise(ranges))
    joined = [ranges[0]]
    for start, stop in ranges[1:]:
        joined[-1:] = [(joined[-1][0], stop)] if start == joined[-1][1] else [joined[-1], (start, stop)]
    assert all(any(start <= begin and end <= stop for start, stop in joined) for begin, end in wanted)
    assert {start for start, _ in joined} <= {begin for begin, _ in wanted}
    assert {stop for _, stop in joined} <= {end for _, end in wanted}


def test_few_requests_for_documents_here_and_there(memory, monkeypatch):
    """Kept records and documents at positions: near ones by one request, far ones each by a small one."""
    record = b'{"text": "' + b"a word " * 15_000 + b'"}\n'  # 105 KB
    memory.pipe_file("/a.jsonl", record * 600)
    with files.Documents("memory://a.jsonl") as documents:
        assert documents.count == 600
        calls, fetch = [], remote.RemoteFile.fetch
        monkeypatch.setattr(remote.RemoteFile, "fetch", lambda self, a, b: calls.append((a, b)) or fetch(self, a, b))
        for step, most in ((9, 8), (30, 20)):  # 0.9 MB and 3.1 MB from one to the next
            chosen = np.arange(0, 600, step)
            assert sum(len(block.texts) for block in documents.at(chosen)) == len(chosen)
            assert len(calls) == most
            assert step < 10 or sum(stop - start for start, stop in calls) == len(record) * len(chosen)
            calls.clear()
            keep = np.zeros(600, bool)
            keep[chosen] = True
            with files.target(documents, "memory://kept.jsonl") as target:
                files.write_kept(documents, keep, target)
                target.commit()
            assert memory.cat_file("/kept.jsonl") == record * len(chosen)
            assert len(calls) == most
            calls.clear()


def test_a_lost_connection_is_tried_again(memory, monkeypatch):
    memory.pipe_file("/a.tsv", LINES)
    monkeypatch.setattr(remote, "PAUSES", (0, 0))
    errors, cat = [ConnectionResetError(), TimeoutError()], type(memory).cat_file

    def flaky(self, *args, **named):
        if errors:
            raise errors.pop()
        return cat(self, *args, **named)

    monkeypatch.setattr(type(memory), "cat_file", flaky)
    with files.Documents("memory://a.tsv") as documents:
        assert len(list(documents.records())) == 4
    errors += [ConnectionResetError()] * 3
    with files.Documents("memory://a.tsv") as documents, pytest.raises(ConnectionError, match="lost"):
        list(documents.records())
    assert not errors


# ---- the web ----


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of a folder; with ranges or without, with a secret in the query, and errors by name."""

    ranges = True
    log: list[tuple[str, str]]
    faults: list[str]

    def log_message(self, *args: object) -> None:
        pass

    def answer(self) -> None:
        head = self.command == "HEAD"
        self.log.append((self.command, self.headers.get("Range", "")))
        if head and "signed" in self.path:  # a signed URL is for one method
            self.send_error(403)
            return
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            super().do_HEAD() if head else super().do_GET()
            return
        status = re.search(r"/error-(\d+)", self.path)
        if status or not path.is_file():
            self.send_error(int(status[1]) if status else 404)
            return
        data, code = path.read_bytes(), 200
        total = len(data)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted and self.ranges:
            code, start, stop = 206, int(wanted[1]), min(int(wanted[2]) + 1, total)
            data = data[start:stop]
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{path.stat().st_mtime_ns}"')
        if code == 206:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{total}")
        self.end_headers()
        if head:
            return
        if self.faults and self.faults.pop() == "cut":
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
            self.wfile.flush()
            self.connection.close()
            return
        self.wfile.write(data)

    do_HEAD = do_GET = answer  # noqa: N815


@pytest.fixture(params=["ranges", "no ranges"])
def web(request, tmp_path):
    """A server of the folder ``web``: its URL, and its handler."""
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    (tmp_path / "web").mkdir()
    kind = type("One", (Handler,), {"log": [], "faults": [], "ranges": request.param == "ranges"})
    handler = functools.partial(kind, directory=str(tmp_path / "web"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", kind
        server.shutdown()
        thread.join()


@pytest.mark.few(2)
@pytest.mark.parametrize("ending", ["tsv", "tsv.gz", "parquet"])
def test_a_file_of_the_web(tmp_path, web, ending):
    url, kind = web
    texts = [f"{STORY} {number % 120} {OTHER}" * (number % 3 + 1) for number in range(400)]
    write_texts(tmp_path / "web" / f"in.{ending}", texts)
    done(tmp_path, "dedup", f"web/in.{ending}", "-o", f"expected.{ending}")
    line = [f"{url}/in.{ending}?sig=t0psecret", "-o", f"out.{ending}", "--report", "report.html"]
    result = lsh(tmp_path, "dedup", *line, "--json", "-v")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / f"out.{ending}").read_bytes() == (tmp_path / f"expected.{ending}").read_bytes()
    printed = result.stdout + result.stderr + (tmp_path / "report.html").read_bytes()
    assert b"t0psecret" not in printed
    if not kind.ranges:  # the probe, and one download
        assert [method for method, _ in kind.log].count("GET") == 2


def test_errors_of_the_web(tmp_path, web):
    url, _ = web
    secret = url.replace("http://", "http://ann:hunter2@") + "/error-{}/a.tsv?X-Amz-Signature=0a1b2c3d"
    expected = {403: "access denied", 401: "access denied", 404: "No such file", 500: "the server failed (status 500)"}
    for status, problem in expected.items():
        message = refused(tmp_path, "dedup", secret.format(status), "-o", "out.tsv")
        assert problem in message
        assert "http://***@127.0.0.1" in message
        assert not any(one in message for one in SECRETS), message
    (tmp_path / "web" / "in.tsv").write_bytes(LINES)
    done(tmp_path, "dedup", f"{url}/in.tsv?signed=0a1b2c3d", "-o", "out.tsv")  # HEAD is forbidden, GET is not
    assert (tmp_path / "out.tsv").read_bytes() == KEPT


def package_error(name: str, **attributes: object) -> Exception:
    """An error such as those of botocore and aiohttp, with a secret in its message."""
    return type(name, (Exception,), attributes)("https://example.org/?sig=0a1b2c3d")


@pytest.mark.parametrize(
    ("error", "kind", "problem"),
    [
        (package_error("NoCredentialsError"), PermissionError, "no credentials found; set AWS_ACCESS_KEY_ID and"),
        (
            package_error("ClientError", status=403),
            PermissionError,
            "access denied; check the credentials and the name",
        ),
        (FileNotFoundError("s3://box"), FileNotFoundError, "No such file or directory"),
        (TimeoutError("t0psecret"), ConnectionError, "the connection failed or was lost (TimeoutError); check the"),
        (RuntimeError("token: t0psecret\nmore"), OSError, "RuntimeError: token: ***"),
    ],
)
def test_errors_of_packages(error, kind, problem):
    def fail() -> None:
        with remote.explained("s3://key:hunter2@box/a"):
            raise error

    with pytest.raises(OSError) as caught:
        fail()
    assert type(caught.value) is kind
    assert caught.value.strerror.startswith(problem)
    assert caught.value.filename == "s3://***@box/a"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "line",
    [
        ["plan", "https://ann:hunter2@example.org/a?sig=0a1b2c3d"],
        ["dedup", "in.tsv", "-o", "out.tsv", "--removed", "s3://key:hunter2@box/removed.parquet"],
        ["dedup", "in.tsv", "-o", "out.tsv", "--report", "s3://key:hunter2@box/report.pdf"],
        ["plan", "--plot", "s3://key:hunter2@box/plot.gif"],
        ["dedup", "zz://ann:hunter2@box/in.tsv?sig=0a1b2c3d", "-o", "out.tsv"],
        ["dedup", "in.tsv", "-o", "out.tsv", "--keep", "https://ann:hunter2@example.org"],
    ],
)
def test_no_message_of_the_command_has_a_secret(tmp_path, monkeypatch, line):
    monkeypatch.setattr("lsh.terminal.inputs._check_target", lambda *given: None)
    (tmp_path / "in.tsv").write_bytes(LINES)
    result = lsh(tmp_path, *line)
    assert result.returncode == 2
    assert result.stderr.startswith(b"lsh: error: ")
    assert not any(secret.encode() in result.stderr for secret in SECRETS), result.stderr


def test_a_folder_of_the_web(tmp_path, web):
    """Its URL ends in a slash; each text is asked for once per reading."""
    url, kind = web
    (tmp_path / "web" / "none").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "web" / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "web" / "in" / name).write_text(text)
    done(tmp_path, "dedup", f"{url}/in/", "-o", "out")
    found = {name: data for name, data in contents(tmp_path / "out").items() if data is not None}
    assert found == {name: text.encode() for name, text in TEXTS.items() if name != "deep/c.txt"}
    assert ("HEAD", "") not in kind.log
    message = refused(tmp_path, "stats", f"{url}/none/")
    assert message == f"lsh: error: {url}/none/: the folder has no file; name another"
    message = refused(tmp_path, "stats", f"{url}/in")
    assert message.endswith("rename it or give --format; the URL of a folder ends in a slash")


def test_a_cut_connection(tmp_path, web, monkeypatch):
    monkeypatch.setattr(remote, "PAUSES", (0, 0))
    url, kind = web
    (tmp_path / "web" / "in.tsv").write_bytes(LINES)
    if kind.ranges:
        kind.faults += ["cut", "cut", "whole"]
        done(tmp_path, "dedup", f"{url}/in.tsv", "-o", "out.tsv")
        assert (tmp_path / "out.tsv").read_bytes() == KEPT
    else:  # it cannot be continued
        kind.faults += ["cut", "whole"]
        message = refused(tmp_path, "dedup", f"{url}/in.tsv", "-o", "out.tsv")
        assert "/in.tsv: the connection failed or was lost" in message


def test_a_short_answer_is_no_end_of_the_file(memory):
    memory.pipe_file("/a.tsv", LINES)
    file = remote.RemoteFile("memory://a.tsv")
    assert file.fetch(0, len(LINES)) == LINES
    with pytest.raises(files.InputError, match=r"expected bytes 0 to 999,999, got 3\d\d bytes; run again"):
        file.fetch(0, 1_000_000)
