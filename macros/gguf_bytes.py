"""Where a GGUF's bytes come from: a local file, or a remote one by HTTP ranges.

Both hand out windows of bytes; neither ever holds a whole file. Standard library only.
"""

from __future__ import annotations

import mmap
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

WINDOW_BYTES = 2**20  # asked for at a time; a header of 150,000 tokens takes 5 to 10
MAX_REMOTE_BYTES = 128 * 2**20  # the largest headers known are under 30 MB
TIMEOUT_S = 30
SPLIT = re.compile(r"-(\d{5})-of-(\d{5})(?=\.gguf)")


class Source(Protocol):
    """Bytes by position."""

    size: int  # [B]

    def window(self, at: int, least: int) -> tuple[bytes | mmap.mmap, int]:
        """A buffer that holds at least `least` bytes from `at`, and where it begins [B]."""
        ...


class Local:
    """A file of this machine, mapped: only what is looked at is read."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.size = data, len(data)

    def window(self, at: int, least: int) -> tuple[mmap.mmap, int]:
        return self.data, 0


class Remote:
    """A file behind a URL, a window of it at a time; what is skipped is never fetched."""

    def __init__(self, url: str) -> None:
        self.url, self.fetched, self.start = url, 0, 0
        self.size = 2**63  # until the first answer says
        self.data = b""
        self.window(0, 4)

    def window(self, at: int, least: int) -> tuple[bytes, int]:
        if not (self.start <= at and at + least <= self.start + len(self.data)):
            n = max(least, WINDOW_BYTES)
            if self.fetched + n > MAX_REMOTE_BYTES:
                raise ValueError(f"header too large: over {MAX_REMOTE_BYTES // 2**20} MiB to fetch")
            self.data, self.start = self._fetch(at, min(at + n, self.size)), at
            self.fetched += len(self.data)
            if len(self.data) < least:
                raise ValueError("cut short: the server sent fewer bytes than asked for")
        return self.data, self.start

    def _fetch(self, start: int, end: int) -> bytes:
        request = urllib.request.Request(self.url, headers={"Range": f"bytes={start}-{end - 1}", "Accept-Encoding": "identity"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                if answer.status != 206:
                    raise ValueError(f"the server does not send parts of files (HTTP {answer.status} where 206 was asked for)")
                whole = answer.headers.get("Content-Range", "").rpartition("/")[2]
                if not whole.isdigit():
                    raise ValueError("the server does not say the file's size (Content-Range)")
                self.size = int(whole)
                return answer.read(end - start)
        except urllib.error.HTTPError as error:
            raise ValueError(f"cannot be fetched: HTTP {error.code} {error.reason}") from None
        except (urllib.error.URLError, OSError) as error:
            raise ValueError(f"cannot be fetched: {getattr(error, 'reason', error)}") from None


def is_url(name: object) -> bool:
    """Whether a name is a web address."""
    return isinstance(name, str) and name.startswith(("http://", "https://"))


@contextmanager
def opened(name: str | os.PathLike[str]) -> Iterator[Source]:
    """The bytes of a file or a URL.

    Raises:
        OSError: the file cannot be opened.
        ValueError: an empty file, or a URL that cannot be read in parts.
    """
    if is_url(name):
        yield Remote(str(name))
        return
    with Path(name).open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise ValueError("not a GGUF: the file is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield Local(data)


def parts(name: str, count: int) -> list[str]:
    """The names of all parts of a split file, in order.

    Raises:
        ValueError: the name does not follow llama.cpp's pattern, or says another number of parts.

    >>> parts("big-00002-of-00003.gguf", 3)[0]
    'big-00001-of-00003.gguf'
    """
    found = SPLIT.search(name)
    if found is None or int(found[2]) != count:
        raise ValueError(f"one of {count} parts of a split model, but not named so; got {name.rpartition('/')[2]!r}; expected a name like model-00001-of-{count:05}.gguf")
    return [SPLIT.sub(f"-{i:05}-of-{count:05}", name, count=1) for i in range(1, count + 1)]
