"""One tidy line for a step that takes time, and a runner that hides a tool's noise behind it.

Standard library only: set-up uses it before anything is installed.
"""

from __future__ import annotations

import collections
import os
import queue
import shutil
import subprocess
import sys
import threading
import time

PLAIN_EVERY_S = 20  # a log file gets a line this often, a terminal one that rewrites itself
BAR_WIDTH = 24


class SetupError(Exception):
    """A failure said in one line; `tail` holds the tool's last lines where they help."""

    def __init__(self, message, tail=()):
        super().__init__(message)
        self.tail = list(tail)


def duration(seconds):
    """A duration as people say it.

    >>> duration(9.4), duration(222)
    ('9 s', '3 min 42 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def bar_line(what, done, total, elapsed_s):
    """The progress line: what, bar, n/m, time left (or time gone while the total is unknown).

    >>> bar_line("Compiling llama.cpp", 35, 140, 60)
    'Compiling llama.cpp [######..................] 35/140, 3 min 00 s left'
    >>> bar_line("Creating .venv", 0, 0, 3)
    'Creating .venv, 3 s'
    """
    if not total:
        return f"{what}, {duration(elapsed_s)}"
    filled = BAR_WIDTH * done // total
    bar = "#" * filled + "." * (BAR_WIDTH - filled)
    left = f", {duration(elapsed_s * (total - done) / done)} left" if done and elapsed_s > 2 else ""
    return f"{what} [{bar}] {done}/{total}{left}"


class Step:
    """One step on the terminal; silent unless it takes over a second."""

    def __init__(self, what):
        self.what, self.done, self.total = what, 0, 0
        self.start = self.counting_since = time.monotonic()
        self.tty = sys.stdout.isatty()
        self.last_plain = self.start - PLAIN_EVERY_S + 1

    def count(self, done, total):
        """Note n of m; the time left is reckoned from the first count on."""
        if not self.total:
            self.counting_since = time.monotonic()
        self.done, self.total = min(done, total), total

    def draw(self):
        """Show the line: rewritten in place on a terminal, now and then elsewhere."""
        now = time.monotonic()
        since = self.counting_since if self.total else self.start
        line = bar_line(self.what, self.done, self.total, now - since)
        if self.tty and now - self.start > 1:
            width = shutil.get_terminal_size().columns - 1
            print("\r\033[K" + line[:width], end="", flush=True)
        elif not self.tty and now - self.last_plain >= PLAIN_EVERY_S:
            print(line, flush=True)
            self.last_plain = now

    def end(self, ok=True):
        """Leave one line that says how long it took."""
        if self.tty:
            print("\r\033[K", end="")
        elapsed_s = time.monotonic() - self.start
        if ok and elapsed_s > 1:
            print(f"{self.what}: {duration(elapsed_s)}", flush=True)


def run(what, argv, on_line=None, env=None, log=None, poll=None):
    """Run a command behind one progress line.

    Args:
        on_line: called with (step, line) for each line of output
        log: file that gets the whole output
        poll: called with (step) about once a second
    Raises:
        SetupError: the command failed; its last lines come with it.
    """
    step, ok = Step(what), False
    lines = queue.Queue()
    tail = collections.deque(maxlen=400)
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, env=env)

    def read():
        for raw in process.stdout:
            lines.put(raw.decode("utf-8", "replace").rstrip())
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        with open(log or os.devnull, "a", encoding="utf-8") as sink:
            while True:
                try:
                    line = lines.get(timeout=0.5)
                except queue.Empty:
                    line = ""
                if line is None:
                    break
                if line:
                    sink.write(line + "\n")
                    tail.append(line)
                    if on_line:
                        on_line(step, line)
                if poll:
                    poll(step)
                step.draw()
        ok = process.wait() == 0
    finally:
        if process.poll() is None:  # Ctrl-C or a full disk here: the child must not go on alone
            process.terminate()
            process.wait()
        step.end(ok)
    if not ok:
        text, known = reason(tail)
        raise SetupError(f"{what}: {text}", () if known else tail)


# What the tools print, and what it means to someone who has never seen them. First match wins:
# pip ends a network failure with "No matching distribution" too.
REASONS = (
    (("No space left on device", "Errno 28"), "the disk is full"),
    (("NewConnectionError", "Temporary failure in name resolution", "NameResolutionError",
      "Network is unreachable", "ConnectTimeout", "Max retries exceeded", "Read timed out"),
     "the package registry cannot be reached; is there a network?"),
    (("SSLError", "CERTIFICATE_VERIFY_FAILED"),
     "the package registry's certificate is not trusted; PIP_CERT=<file> names another"),
    (("DO NOT MATCH THE HASHES",), "a download is not the file that lock/ names; not installed"),
    (("No matching distribution found",),
     "a package has no ready-made file for this Python and platform"),
    (("Killed signal terminated program", "virtual memory exhausted", "out of memory"),
     "out of memory; CMAKE_BUILD_PARALLEL_LEVEL=1 compiles one file at a time"),
)


def reason(lines):
    """Why a tool failed, in one line, from what it printed; and whether that line says it all.

    >>> reason(["ERROR: [Errno 28] No space left on device"])
    ('the disk is full', True)
    """
    text = "\n".join(lines)
    for signs, meaning in REASONS:
        if any(sign in text for sign in signs):
            return meaning, True
    errors = [line.strip() for line in lines if "error" in line.lower()]
    return (errors[0][:160] if errors else "failed without saying why"), False
