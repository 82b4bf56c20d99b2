"""Commands that read and write objects of S3: a server of moto, behind a proxy that can cut connections.

They need the packages of ``.ci/requirements-remote.txt``.
"""

import doctest
import gzip
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from cutting import Cut, Proxy
from running import DEFAULT_SIGNALS, contents, done, environment, lsh, refused

from lsh.storage import remote

pytest.importorskip("moto.server", reason="moto's server is not installed; see .ci/requirements-remote.txt")
s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed; see .ci/requirements-remote.txt")

SECRET = "wJalrXUtnFEMI-t0psecret"
WORDS = ["ferry", "harbour", "nine", "passengers", "brass", "growers", "valley", "pears", "frost", "tortoise", "egg"]


@pytest.fixture(scope="module")
def proxy():
    """A running server, behind a proxy."""
    import logging

    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    proxy = Proxy(server.get_host_and_port()[1])
    yield proxy
    proxy.close()
    server.stop()


class Bucket:
    """A new bucket: `url` and `proxy` for the tests, `filesystem` to look at it."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy, self.name = proxy, f"b-{uuid.uuid4().hex}"
        self.url = f"s3://{self.name}"
        self.filesystem = s3fs.S3FileSystem(use_listings_cache=False)
        self.filesystem.mkdir(self.name)

    def objects(self) -> dict[str, bytes]:
        names = self.filesystem.find(self.name) if self.filesystem.ls(self.name) else []
        return {name.removeprefix(f"{self.name}/"): self.filesystem.cat_file(name) for name in sorted(names)}

    def put(self, name: str, data: bytes) -> str:
        self.filesystem.pipe_file(f"{self.name}/{name}", data)
        return f"{self.url}/{name}"

    def uploads(self) -> list[str]:
        return [each["Key"] for each in self.filesystem.list_multipart_uploads(self.name)]


@pytest.fixture
def bucket(proxy, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    made = Bucket(proxy)
    proxy.clear()
    yield made
    s3fs.S3FileSystem.clear_instance_cache()


def retry_once(monkeypatch) -> None:
    """Let a request fail after few retries."""
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    monkeypatch.setattr(remote, "PAUSES", ())
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()


def lines(count: int, size: int = 100, seed: int = 0) -> bytes:
    """Documents of different texts, of which every tenth is a copy of the one before."""
    draw, texts = random.Random(seed), []
    for number in range(count):
        text = texts[-1] if number % 10 == 9 else f"{draw.getrandbits(64)} {' '.join(draw.choices(WORDS, k=size // 7))}"
        texts.append(text)
    return "".join(f"{number}\t{text}\n" for number, text in enumerate(texts)).encode()


def kept(tmp_path, data: bytes) -> bytes:
    """What a run on a local file keeps."""
    (tmp_path / "local.tsv").write_bytes(data)
    done(tmp_path, "dedup", "local.tsv", "-o", "local-kept.tsv")
    return (tmp_path / "local-kept.tsv").read_bytes()


# ---- whole runs ----


def test_all_outputs_are_objects(tmp_path, bucket):
    data = lines(500)
    source = bucket.put("in/news.tsv.gz", gzip.compress(data))
    outputs = ["--removed", f"{bucket.url}/removed.tsv", "--clusters", f"{bucket.url}/clusters.tsv"]
    outputs += ["--report", f"{bucket.url}/report.html"]
    result = lsh(tmp_path, "dedup", source, "-o", f"{bucket.url}/out/unique.tsv", *outputs, "--json", "-v")
    assert result.returncode == 0, result.stderr
    found = bucket.objects()
    assert found["out/unique.tsv"] == kept(tmp_path, data)
    assert set(found) == {"in/news.tsv.gz", "out/unique.tsv", "removed.tsv", "clusters.tsv", "report.html"}
    assert json.loads(result.stdout)["removed"] == found["removed.tsv"].count(b"\n") == 50
    printed = result.stdout + result.stderr + found["report.html"]
    assert SECRET.encode() not in printed
    assert b"AKIA" not in printed
    assert bucket.uploads() == []


def test_a_version_of_an_object(tmp_path, bucket):
    bucket.filesystem.call_s3(
        "put_bucket_versioning", Bucket=bucket.name, VersioningConfiguration={"Status": "Enabled"}
    )
    bucket.put("in.tsv", lines(30))
    s3fs.S3FileSystem.clear_instance_cache()
    versions = s3fs.S3FileSystem(version_aware=True).object_version_info(f"{bucket.name}/in.tsv")
    bucket.put("in.tsv", b"another\n")
    done(tmp_path, "dedup", f"{bucket.url}/in.tsv?versionId={versions[0]['VersionId']}", "-o", "out.tsv")
    assert (tmp_path / "out.tsv").read_bytes() == kept(tmp_path, lines(30))


# ---- docs/object-store.md ----

PAGE = Path(__file__).parents[2] / "docs" / "object-store.md"


@pytest.fixture
def store(bucket):
    """The bucket of the page: the documents of examples/sample.tsv in four shards."""
    sample = (Path(__file__).parents[2] / "examples" / "sample.tsv").read_bytes().splitlines(keepends=True)
    for number in range(4):
        bucket.put(f"shards/part-{number}.tsv.gz", gzip.compress(b"".join(sample[number::4])))
    return bucket


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_commands_of_the_page(tmp_path, store):
    count = 0
    for step in re.split(r"^\$ ", "".join(blocks("console")), flags=re.MULTILINE)[1:]:
        command, _, expected = step.partition("\n")
        ran = lsh(tmp_path, *shlex.split(command.replace("s3://bucket", store.url))[1:])
        printed = (ran.stdout + ran.stderr).decode().replace(store.url, "s3://bucket")
        assert doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS), (command, printed)
        assert ran.returncode == (2 if "error: " in expected else 0)
        count += 1
    assert count >= 8
    found = store.objects()
    expected_names = {f"{folder}/part-{number}.tsv.gz" for folder in ("shards", "unique") for number in range(4)}
    assert set(found) == expected_names | {"removed.tsv", "report.html", "new.tsv.gz"}
    assert found["removed.tsv"].count(b"\n") == 72
    assert gzip.decompress(found["new.tsv.gz"]) == b""
    assert store.uploads() == []


@pytest.mark.slow
def test_the_program_of_the_page(store):
    (program,) = blocks("python")
    exec(program.replace("s3://bucket", store.url), {})
    found = store.objects()
    written = b"".join(gzip.decompress(found[f"kept/part-{number}.tsv.gz"]) for number in range(4))
    assert written.count(b"\n") == 128


# ---- cut connections ----


def test_a_cut_read_is_tried_again(tmp_path, bucket):
    data = lines(12_000, 900)
    source = bucket.put("in.tsv", data)
    expected = kept(tmp_path, data)
    bucket.proxy.clear()
    bucket.proxy.cuts += [Cut("GET", "in.tsv", 3_000_000), Cut("GET", "in.tsv", 100), Cut("HEAD", "in.tsv", 10)]
    done(tmp_path, "dedup", source, "-o", "out.tsv")
    assert bucket.proxy.cuts == []
    assert (tmp_path / "out.tsv").read_bytes() == expected


@pytest.mark.parametrize("where", ["?uploads", "partNumber=2", "uploadId="])
def test_a_cut_upload_is_tried_again(tmp_path, bucket, monkeypatch, where):
    monkeypatch.setattr(remote, "PART", 5 << 20)
    data = lines(14_000, 900)
    (tmp_path / "in.tsv").write_bytes(data)
    method = "PUT" if "part" in where else "POST"
    bucket.proxy.cuts += [Cut(method, f"unique.tsv{where}" if "?" in where else where, 1000, method == "PUT")]
    done(tmp_path, "dedup", "in.tsv", "-o", f"{bucket.url}/unique.tsv")
    assert bucket.proxy.cuts == []
    assert bucket.objects() == {"unique.tsv": kept(tmp_path, data)}
    assert bucket.uploads() == []


def test_an_upload_that_is_always_cut_leaves_nothing(tmp_path, bucket, monkeypatch):
    retry_once(monkeypatch)
    (tmp_path / "in.tsv").write_bytes(lines(2000))
    before = contents(tmp_path)
    bucket.proxy.cuts += [Cut("PUT", "partNumber", 1000, of_request=True)] * 20
    message = refused(tmp_path, "dedup", "in.tsv", "-o", f"{bucket.url}/unique.tsv", "--removed", "removed.tsv")
    assert f"lsh: error: {bucket.url}/unique.tsv: the connection failed or was lost" in message
    bucket.proxy.clear()
    assert contents(tmp_path) == before
    assert bucket.objects() == {}
    assert bucket.uploads() == []


# ---- nothing half written ----


def test_shards_that_fail_leave_nothing(tmp_path, bucket, monkeypatch):
    retry_once(monkeypatch)
    for number in range(3):
        bucket.put(f"in/{number}.tsv", lines(10, seed=number))
    before = bucket.objects()
    bucket.proxy.cuts += [Cut("POST", "out/1.tsv?uploadId", 0)] * 5  # after the first shard has appeared
    message = refused(tmp_path, "dedup", f"{bucket.url}/in", "-o", f"{bucket.url}/out/", "--id-field", "none")
    assert "out/1.tsv: the connection failed or was lost" in message
    bucket.proxy.clear()
    assert bucket.objects() == before
    assert bucket.uploads() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_aborts_the_upload(tmp_path, bucket, number):
    """The command is interrupted while it sends parts; then no upload is left."""
    (tmp_path / "in.tsv").write_bytes(lines(2000, 900))
    bucket.proxy.clear()
    code = (
        f"import signal, sys; {DEFAULT_SIGNALS}; from lsh.storage import remote; remote.PART = 5 << 20\n"
        "from lsh.command import dedup; from lsh import files\n"
        "def endless(documents, keep, target, *others):\n"
        "    while True: target.write(bytes(1 << 18))\n"
        "files.write_kept = endless\n"
        "from lsh.command.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "dedup", "in.tsv", "-o", f"{bucket.url}/out.tsv"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE) as process:
        try:
            end = time.monotonic() + 60
            while bucket.proxy.count("PUT", "partNumber") < 3 and time.monotonic() < end:
                time.sleep(0.02)
            process.send_signal(number)
            stderr = process.communicate(timeout=60)[1].decode()
        finally:
            process.kill()
    assert process.returncode == 128 + number, stderr
    assert stderr.splitlines()[-1] == f"lsh: error: {'interrupted' if number == signal.SIGINT else 'terminated'}"
    assert bucket.uploads() == []
    assert bucket.objects() == {}


# ---- errors ----


def test_no_credentials(tmp_path, bucket, monkeypatch):
    source = bucket.put("in.tsv", lines(10))
    s3fs.S3FileSystem.clear_instance_cache()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.fspath(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", os.fspath(tmp_path / "none"))
    message = refused(tmp_path, "dedup", source, "-o", "out.tsv")
    assert "no credentials found; set AWS_ACCESS_KEY_ID" in message


NO_BUCKET = "no such bucket; correct the name, or create it"


@pytest.mark.parametrize(
    ("source", "output", "problem"),
    [
        ("s3://b-none/in.tsv", "out.tsv", f"s3://b-none/in.tsv: {NO_BUCKET}"),
        ("s3://b-none/in/", "out.tsv", f"s3://b-none/in/: {NO_BUCKET}"),
        ("s3://b-none/in/*.tsv", "out.tsv", "s3://b-none/in/*.tsv: no file matches this pattern; correct it"),
        ("in.tsv", "s3://b-none/out.tsv", f"s3://b-none/out.tsv: {NO_BUCKET}"),
        ("in.tsv", "s3://b-none/out/", f"s3://b-none/out/: {NO_BUCKET}"),
        ("in.tsv", "s3://b-none", "s3://b-none: it names a bucket, not a file; write s3://BUCKET/NAME"),
    ],
)
def test_a_missing_bucket_is_an_error_before_the_work(tmp_path, bucket, source, output, problem):
    (tmp_path / "in.tsv").write_bytes(b"not read")
    assert refused(tmp_path, "dedup", source, "-o", output) == f"lsh: error: {problem}"
