"""Behaviour that all commands share: help, exit codes, standard streams, signals; mostly in real processes.

The other tests call `main` in their own process. A few runs here check that a real process does the same.
"""

import csv
import gzip
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from running import (
    DEFAULT_SIGNALS,
    DOCUMENTS,
    KEPT,
    OTHER,
    SAMPLE,
    STORY,
    TIMEOUT,
    contents,
    done,
    environment,
    lsh,
    process,
    refused,
    sample,
)

import lsh as package
from lsh.command.main import main

COMMANDS = ["dedup", "pairs", "show", "compare", "plan", "stats", "version"]
MAIN = "from lsh.command.main import main"


# Usage and help.


def test_help(news):
    result = lsh(news)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.startswith(b"usage: lsh")
    text = done(news, "--help").decode()
    codes = r"exit codes: 0 done; 2 .*; 129 hangup; 130 interrupted;\n141 broken pipe; 143 terminated"
    for command in COMMANDS:
        assert re.search(rf"^ +{command} +\w", text, re.MULTILINE), command
        own = done(news, command, "--help").decode()
        assert re.search(codes, own)
        assert max(map(len, own.splitlines())) <= 120
    name, version = done(news, "--version").decode().split()
    assert name.startswith("lsh")
    assert version == package.__version__


@pytest.mark.few(2)
@pytest.mark.parametrize("command", COMMANDS)
def test_examples_of_the_help_run(tmp_path, command):
    records = [json.dumps({"id": one.decode(), "text": text.decode()}).encode() + b"\n" for one, text in sample()]
    (tmp_path / "news.tsv.gz").write_bytes(gzip.compress(SAMPLE.read_bytes()))
    (tmp_path / "part-1.jsonl.gz").write_bytes(gzip.compress(b"".join(records[:150])))
    (tmp_path / "part-2.jsonl.gz").write_bytes(gzip.compress(b"".join(records[150:])))
    (tmp_path / "train.jsonl").write_bytes(b"".join(records[:150]))
    for name in ("test.jsonl", "today.jsonl"):
        (tmp_path / name).write_bytes(b"".join(records[100:]))
    (tmp_path / "monday.txt").write_bytes(STORY)
    (tmp_path / "tuesday.txt").write_bytes(OTHER)
    if command == "dedup":
        done(tmp_path, "index", "create", "news.index", "--texts", "stored")
        done(tmp_path, "index", "add", "news.index", "news.tsv.gz")
    examples = re.findall(r"^  lsh (.*)$", done(tmp_path, command, "--help").decode(), re.MULTILINE)
    assert examples
    for example in examples:
        arguments = shlex.split(example)
        assert arguments[0] == command
        if "--plot" in arguments:
            pytest.importorskip("matplotlib")
        printed = done(tmp_path, *arguments)
        assert bool(printed) == ("-o" not in arguments)


# Processes: their results are those of `main`; how they start.


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (["pairs", "news.txt", "-q"], b""),
        (["dedup", "-", "-o", "-", "--format", "txt.gz", "--removed", "removed.tsv", "-q"], gzip.compress(DOCUMENTS)),
        (["stats", "absent.txt"], b""),
        ([], b""),
    ],
    ids=["pairs", "dedup", "error", "help"],
)
def test_a_process_does_as_main_does(tmp_path, arguments, stdin):
    runs = []
    for run in (lsh, process):
        folder = tmp_path / run.__name__
        folder.mkdir()
        (folder / "news.txt").write_bytes(DOCUMENTS)
        result = run(folder, *arguments, stdin=stdin)
        runs.append((result.returncode, result.stdout, result.stderr, contents(folder)))
    assert runs[0] == runs[1]


def test_a_run_in_this_process_leaves_it_as_it_was(tmp_path, monkeypatch):
    """However the run ends; and handlers of the caller's own are not replaced."""

    def state():
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
        streams = sys.stdin, sys.stdout, sys.stderr
        return os.getcwd(), streams, handlers, warnings.filters[:], warnings.showwarning, csv.field_size_limit()

    before, own = signal.getsignal(signal.SIGTERM), lambda *_: None
    (tmp_path / "in.csv").write_bytes(b'id,text\n1,"a ""b"" c"\n2,"' + b"long " * 40_000 + b'"\n')
    monkeypatch.chdir(tmp_path)
    try:
        for run in (lambda *words: lsh(tmp_path, *words).returncode, lambda *words: main(list(words))):
            at_first = state()
            assert at_first[-1] < 200_000
            assert run("version") == 0
            assert run("stats", "absent.txt") == run("nonsense") == 2
            assert run("dedup", "in.csv", "-o", "out.csv", "-q") == 0
            assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "in.csv").read_bytes()
            assert run("dedup", "in.csv", "-o", "out.csv", "--id-field", "key") == 2
            assert state() == at_first
            signal.signal(signal.SIGTERM, own)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["txt", "txt.gz"])
def test_no_file_is_left_open(tmp_path, form):
    """With every warning an error, nothing but the summary is printed."""
    data = DOCUMENTS if form == "txt" else gzip.compress(DOCUMENTS)
    (tmp_path / f"in.{form}").write_bytes(data)
    options = ["-o", f"out.{form}", "--removed", "removed.tsv", "--format", form]
    program = f"{MAIN}; raise SystemExit(main(['dedup', 'in.{form}', *{options}]) or main(['dedup', '-', *{options}]))"
    result = process(tmp_path, stdin=data, python=["-X", "dev", "-W", "error", "-c", program])
    assert (result.returncode, result.stderr.count(b"\n")) == (0, 2), result.stderr


@pytest.mark.slow
def test_input_that_can_be_read_once(tmp_path):
    """A pipe that has a path, such as the one of the shell's <(...)."""
    arguments = ["dedup", "/dev/fd/3", "-o", "out.txt", "--format", "txt"]
    done(tmp_path, *arguments, run=process, stdin=DOCUMENTS, shell="3<&0 </dev/null")
    assert (tmp_path / "out.txt").read_bytes() == KEPT


@pytest.mark.parametrize(
    "arguments",
    [
        *(["pairs", SAMPLE, "-q"], ["compare", SAMPLE, SAMPLE], ["plan"], ["stats", SAMPLE, "-q"], ["version"]),
        *(["--help"], ["plan", "--help"], ["dedup", SAMPLE, "--dry-run", "--json", "-q"]),
        ["passages", SAMPLE, "--dry-run", "--json", "-q"],
        ["contained", SAMPLE.with_name("questions.tsv"), SAMPLE, "--dry-run", "--json", "-q"],
    ],
    ids=lambda arguments: " ".join(Path(argument).name for argument in arguments),
)
def test_a_broken_pipe_ends_quietly(tmp_path, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb", 0) as stdout:
        result = lsh(tmp_path, *arguments, stdout=stdout)
    assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.slow
def test_a_pipe_that_breaks_while_it_is_written_ends_quietly(tmp_path):
    """Python itself writes nothing at exit either."""
    lines = b"".join(b"%d times %d is a number, and %d its square\n" % (i, i, i * i) for i in range(20_000))
    (tmp_path / "in.txt").write_bytes(lines)
    with subprocess.Popen(
        [sys.executable, "-m", "lsh", "dedup", "in.txt", "-o", "-", "--threshold", "1"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as running:
        running.stdout.close()
        stderr = running.stderr.read()
        running.wait(TIMEOUT)
    assert (running.returncode, stderr) == (141, b"")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_one_line_of_error(news):
    assert refused(news, "version", run=process, shell=">/dev/full").startswith("lsh: error: standard output: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "closed", "code"),
    [
        (["-", "-o", "out.txt", "--format", "txt"], "<&-", 2),
        (["news.txt", "-o", "-"], ">&-", 2),
        (["news.txt", "-o", "out.txt", "--json"], ">&-", 2),
        (["news.txt", "-o", "out.txt", "--removed", "-"], ">&-", 2),
        (["news.txt", "-o", "out.txt"], "2>&-", 0),
    ],
)
def test_a_closed_standard_stream_is_an_error(news, arguments, closed, code):
    """A daemon may start the command with a stream closed that it needs; it needs no standard error."""
    result = process(news, "dedup", *arguments, shell=closed)
    assert result.returncode == code
    assert result.stderr.startswith(b"lsh: error: " if code else b"")
    assert set(contents(news)) == ({"news.txt"} if code else {"news.txt", "out.txt"})


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("command", "number", "code", "word"),
    [
        ("pairs", signal.SIGINT, 130, "interrupted"),
        ("pairs", signal.SIGTERM, 143, "terminated"),
        ("passages", signal.SIGINT, 130, "interrupted"),
        (f"contained {SAMPLE}", signal.SIGINT, 130, "interrupted"),
        ("dedup", signal.SIGHUP, 129, "hangup"),
    ],
)
def test_interrupt(tmp_path, command, number, code, word):
    """Ctrl-C or SIGTERM while waiting for input: one line, a separate exit code, and the old file is kept."""
    (tmp_path / "out.txt").write_bytes(b"yesterday\n")
    program = f"import runpy, signal; {DEFAULT_SIGNALS}; runpy.run_module('lsh', run_name='__main__', alter_sys=True)"
    with subprocess.Popen(
        [sys.executable, "-c", program, *command.split(), "-", "-o", "out.txt", "--format", "txt"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as running:
        running.stdin.write(DOCUMENTS * 5_000)  # more than a pipe holds, so the command is reading
        running.stdin.flush()
        time.sleep(0.2)  # until it waits for more input
        running.send_signal(number)
        running.wait(TIMEOUT)
        stderr = running.stderr.read().decode()
    assert running.returncode == code
    assert stderr == f"lsh: error: {word}\n"
    assert contents(tmp_path) == {"out.txt": b"yesterday\n"}


def signalled(folder: Path, kill: str) -> subprocess.CompletedProcess[bytes]:
    """Run `kill` after each call of `open`, when a part of the output exists."""
    program = (
        "import builtins, glob, os, signal\n"
        f"{MAIN}\n"
        f"{DEFAULT_SIGNALS}\n"
        "real = builtins.open\n"
        "def slow(path, *a, **k):\n"
        "    result = real(path, *a, **k)\n"
        f"    if str(path).endswith('.part'): {kill}\n"
        "    return result\n"
        "builtins.open = slow\n"
        "raise SystemExit(main(['dedup', 'news.txt', '-o', 'out.txt', '-q']))\n"
    )
    return process(folder, python=["-c", program])


@pytest.mark.few(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_while_a_file_is_opened_leaves_nothing(news, number):
    result = signalled(news, f"os.kill(os.getpid(), {int(number)})")
    assert result.returncode == 128 + number
    assert result.stderr.count(b"\n") == 1
    assert contents(news) == {"news.txt": DOCUMENTS}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_ends_at_once(news, number):
    """The second signal comes during cleanup. The old file is kept; a part of the new one may be left."""
    (news / "out.txt").write_bytes(b"yesterday\n")
    clean = f"os.unlink = lambda *a: os.kill(os.getpid(), {int(number)})"  # cleanup calls it for the partial file
    result = signalled(news, f"exec({clean!r}) or os.kill(os.getpid(), 2)")
    assert result.returncode == 128 + number
    assert result.stderr == b""
    assert (news / "out.txt").read_bytes() == b"yesterday\n"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("output", ["out.txt", "out/", "-", None])
def test_a_signal_whose_exception_is_lost_ends_the_run(news, output, number):
    """Python drops what is raised in `__del__`, and in a callback of a weak reference as of its import locks."""
    arguments = ["dedup", "news.txt", "-o", output, "--removed", "removed.tsv", "-q"] if output else ["version"]
    program = (
        "import builtins, os, signal, lsh.files\n"
        f"{MAIN}\n"
        f"{DEFAULT_SIGNALS}\n"
        "class Lost:\n"
        f"    def __del__(self): os.kill(os.getpid(), {int(number)})\n"
        "from lsh.terminal import console\n"
        "from lsh.files import documents\n"
        "real = documents.write_kept\n"
        "def lose(*values): real(*values); Lost()\n"
        "documents.write_kept = lsh.files.write_kept = lose\n"
        "console.write_data = lambda text: [Lost()].clear()\n"
        f"raise SystemExit(main({arguments}))\n"
    )
    result = process(news, python=["-c", program])
    assert result.returncode == 128 + number
    assert result.stderr.count(b"\n") == 1
    assert contents(news) == {"news.txt": DOCUMENTS}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no masks of signals")
def test_signals_at_the_same_moment_print_no_traceback(news):
    kill = (
        "signal.pthread_sigmask(signal.SIG_BLOCK, {1, 2, 15}); [os.kill(os.getpid(), n) for n in (15, 2, 1)]; "
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, {1, 2, 15})"
    )
    result = signalled(news, kill)
    assert result.returncode in (129, 130, 143)
    assert b"Traceback" not in result.stderr
    assert "out.txt" not in contents(news)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("numpy", signal.SIGINT),
        ("lsh.terminal.options", signal.SIGINT),
        ("argparse", signal.SIGINT),
        ("numpy", signal.SIGTERM),
        ("argparse", signal.SIGHUP),
        ("argparse of python -m lsh", signal.SIGINT),
    ],
)
def test_a_signal_while_modules_load(tmp_path, module, number):
    """During startup: one line, no traceback."""
    module, _, runs_module = module.partition(" of ")
    name = "site-packages/lsh/__main__.py" if runs_module else "lsh"
    program = (
        f"import os, signal, sys; sys.argv[0] = {name!r}; {DEFAULT_SIGNALS}\n"
        "class Finder:\n"
        "    def find_spec(name, *more):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), {int(number)})\n"
        "sys.modules.pop('argparse', None); sys.meta_path.insert(0, Finder)\n"
        f"{MAIN}; raise SystemExit(main(['version']))\n"
    )
    result = process(tmp_path, python=["-c", program])
    word = {signal.SIGINT: b"interrupted", signal.SIGTERM: b"terminated", signal.SIGHUP: b"hangup"}[number]
    assert (result.returncode, result.stdout, result.stderr) == (128 + number, b"", b"lsh: error: %b\n" % word)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["-c", "lsh"])
def test_loading_the_library_leaves_the_signals_alone(news, name):
    """Also in a program with the name of the command; and one that is ignored, as with nohup, stays ignored."""
    program = (
        f"import os, signal, sys; sys.argv[0] = {name!r}; {DEFAULT_SIGNALS}; signal.signal(1, signal.SIG_IGN); "
        "get = signal.getsignal; before = [get(1), get(2), get(15)]; "
        "import lsh; assert [get(1), get(2), get(15)] == before; "
        f"{MAIN}; os.kill(os.getpid(), 1); raise SystemExit(main(['dedup', 'news.txt', '-o', 'out.txt', '-q']))"
    )
    assert process(news, python=["-c", program]).returncode == 0
    assert (news / "out.txt").read_bytes() == KEPT


def test_a_stream_without_a_descriptor(news, monkeypatch):
    """As in a notebook."""
    stream = io.StringIO()
    monkeypatch.chdir(news)
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(["stats", "news.txt", "-q"]) == 0
    assert stream.getvalue().startswith("documents")
