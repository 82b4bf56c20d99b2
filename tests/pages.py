"""Pages of HTML as tests look at them: parsed, and in a browser."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lsh.report import page


class Page(HTMLParser):
    """A parsed page: every element, the text of the marked places, and the rows of the tables."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.rows: dict[str, list[list[str]]] = {}
        self.tiles: list[list[str]] = []
        self.pairs: dict[str, list[str]] = {}
        self.sections: dict[str, str] = {}
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_decl(self, declaration: str) -> None:
        assert declaration == "doctype html"

    def handle_comment(self, comment: str) -> None:
        raise AssertionError(f"a comment: {comment!r}")

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag in {*page.VOID, "img"}:
            return
        self._open.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.setdefault(self._id("table"), []).append([])
        elif tag in ("td", "th"):
            self.rows[self._id("table")][-1].append("")
        elif tag == "dt":
            self.tiles.append([])
        if tag in ("dt", "dd"):
            self.tiles[-1].append("")
        if tag == "bdi" and dict(attributes).get("class") == "words":
            self.pairs.setdefault(self._id("div"), []).append("")

    def handle_endtag(self, tag: str) -> None:
        opened = self._open.pop()
        assert opened[0] == tag

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self._open]
        if "script" in tags or "style" in tags:
            return
        self.text.append(data)
        if "td" in tags or "th" in tags:
            self.rows[self._id("table")][-1][-1] += data
        if "dt" in tags or "dd" in tags:
            self.tiles[-1][-1] += data
        if any(attributes.get("class") == "words" for _, attributes in self._open):
            self.pairs[self._id("div")][-1] += data
        for _, attributes in self._open:
            if attributes.get("id"):
                self.sections[attributes["id"]] = self.sections.get(attributes["id"], "") + data

    def _id(self, tag: str) -> str:
        return next(attributes["id"] for name, attributes in self._open if name == tag and attributes.get("id")) or ""

    @property
    def figures(self) -> dict[str, tuple[str, str]]:
        """The tiles: name, figure and the text below it."""
        return {name: (figure, more) for name, figure, more in self.tiles}

    def column(self, table: str, column: int) -> list[str]:
        """The cells of a column below its header."""
        return [row[column] for row in self.rows[table][1:]]


def dumped(folder: Path, name: str, *options: str) -> str:
    """A page of a folder as Chromium has it after its scripts; the test is skipped where Chromium is not installed."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium here: install the package chromium to look at the report in it")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"]
    command += [f"--user-data-dir={folder / 'profile'}", *options, f"file://{folder / name}"]
    return output_of(*command).decode("utf-8").strip()


def output_of(*command: str) -> bytes:
    """Run a browser, a second time if it hangs.

    Ends all processes of the browser. They share its output, so a pipe would not end with the first of them.
    """
    for timeout in (30, 90):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return output_within(timeout, *command)
    pytest.fail("the browser hung twice")


def output_within(timeout: float, *command: str) -> bytes:
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # a sanitizer is for Python only
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        running = subprocess.Popen(command, env=env, stdout=stdout, stderr=stderr, start_new_session=True)
        try:
            code = running.wait(timeout)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        for file in (stdout, stderr):
            file.seek(0)
        assert code == 0, stderr.read()[-2000:]
        return stdout.read()
