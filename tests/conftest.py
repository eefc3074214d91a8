"""Copies of the project to break (tests never write into the checkout), the site built once, and a browser to read it."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import mimetypes
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("bench", "docs", "labdata", "macros", "mkdocs.yml")


def copy_project(folder: Path) -> Path:
    """A fresh copy of everything a bench or a build reads."""
    home = folder / "project"
    home.mkdir(parents=True)
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, home / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, home / part)
    if (ROOT / ".cache").exists():  # keyed by content: no need to draw again what is there
        shutil.copytree(ROOT / ".cache", home / ".cache")
    return home


def reseal(path: Path) -> None:
    """Make the seal beside a changed file fit it again, as whoever changed it could where git does not look."""
    beside = path.with_name(f"{path.stem}.seal.yml")
    text = beside.read_text(encoding="utf-8")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    beside.write_text(re.sub(r"(?m)^sha256: .*$", f"sha256: {digest}", text), encoding="utf-8")


def run_module(cwd: Path, *args: str, env: dict[str, str] | None = None, timeout: float = 300) -> subprocess.CompletedProcess:
    """`python -m ...` in a folder; what it says is kept. Sites are previews: a day still being written fails no test."""
    full = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "INKLAB_PREVIEW": "1", **(env or {})}
    return subprocess.run([sys.executable, "-m", *args], cwd=cwd, env=full, capture_output=True, text=True, timeout=timeout)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A fresh copy of everything a bench or a build reads."""
    return copy_project(tmp_path)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real lab's site, built once for all tests; none of them writes into it."""
    home = copy_project(tmp_path_factory.mktemp("site"))
    done = run_module(home, "mkdocs", "build", "-q")
    assert done.returncode == 0, done.stderr
    return home / "site"


@contextlib.contextmanager
def serving(folder: Path, under: str = "/") -> Iterator[str]:
    """Serve a folder below an address such as "/lab/", compressed as a real host does; yields that address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = unquote(urlsplit(self.path).path)
            path = folder / asked.removeprefix(under) if asked.startswith(under) else folder / "404.html"
            if path.is_dir() and not asked.endswith("/"):
                return self.answer(301, b"", "text/plain", Location=f"{asked}/")
            path = path / "index.html" if path.is_dir() else path
            code = 200 if path.is_file() and asked.startswith(under) else 404
            path = path if code == 200 else folder / "404.html"
            self.answer(code, path.read_bytes() if path.is_file() else b"", mimetypes.guess_type(path)[0] or "application/octet-stream")

        do_HEAD = do_GET

        def answer(self, code: int, body: bytes, kind: str, **headers: str) -> None:
            if kind.startswith("text/") or kind.endswith(("javascript", "json", "xml")):
                body, headers = gzip.compress(body, mtime=0), {**headers, "Content-Encoding": "gzip"}
            self.send_response(code)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "max-age=600", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{under}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def served(site: Path) -> Iterator[str]:
    """The address of the built site, ending in a slash."""
    with serving(site) as address:
        yield address


def chromium() -> str:
    """The browser of the tests; without one they are skipped, except in CI, where they fail."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        words = "the browser tests need Chromium; Debian and Ubuntu: apt install chromium"
        pytest.fail(words, pytrace=False) if os.environ.get("CI") else pytest.skip(words)
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium through Playwright's sync API; tests open pages with `open_page` or `read`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update"]
        chrome = playwright.chromium.launch(executable_path=chromium(), args=options)
        yield chrome
        chrome.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens empty pages, each in a context of its own: `open_page(**options of a context)`; closed after the test.

    What a page complains of is kept in `page.complaints`: uncaught errors, errors and warnings of the console, failed answers.
    A test that ends with any fails; one that provokes them looks at the list and clears it.
    """
    pages = []

    def opened(**how: Any) -> Any:
        page = browser.new_context(**{"viewport": {"width": 1280, "height": 850}, **how}).new_page()
        page.set_default_timeout(60_000)  # a busy machine is slow, not wrong
        page.complaints = []
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("console", lambda said: page.complaints.append(f"{said.text} ({said.location['url']})") if said.type in ("error", "warning") else None)
        page.on("response", lambda answer: page.complaints.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None)
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.context.close()
    # In a folder a typeface may not be fetched ahead; it comes with the style sheet.
    said = [line for page in pages for line in page.complaints if not ("file://" in line and ".woff2" in line)]
    assert not said, "\n".join(said)


@pytest.fixture
def read(open_page: Callable[..., Any], request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Opens pages at an address, a whole one or one below the built site's, their typefaces there: `read(address, **options of a context)`."""

    def reader(address: str, **how: Any) -> Any:
        page = open_page(**how)
        page.goto(address if ":" in address else request.getfixturevalue("served") + address)
        page.evaluate("() => document.fonts.ready")
        return page

    return reader


def until(page: Any, script: str, timeout_s: float = 60) -> None:
    """Wait for a script's value to be true; Playwright's own waiting evaluates strings in the page, which its policy forbids."""
    end = time.monotonic() + timeout_s
    while not page.evaluate(script):
        assert time.monotonic() < end, f"still not: {script}"
        page.wait_for_timeout(100)
