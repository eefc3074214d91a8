"""What a stranger's file may be: a plain file of bounded size, and words a reader can see. Standard library only.

Everything under labdata/ may come from people nobody knows, and so may every log: nothing outside labdata/ is
read for them, nothing is read before its size is known, and no name can pass for another.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_YAML_BYTES = 8 * 2**20  # a run of 10,000 tests takes 4 MB
MAX_OTHER_BYTES = 32 * 2**20  # a log in raw/, word for word
MAX_NUMBER = 64  # characters of a number; "1:1:1:..." is one of YAML's, and its value grows with every colon
MAX_DEPTH = 64  # levels of nesting; the deepest key of labdata/ lies at 8

# Controls, marks that turn the direction of a line, and signs of no width: what is read is not what is seen.
HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Cyrillic and Greek letters drawn as Latin ones, and what they pass for. Source: Unicode UTS 39, confusables.txt.
ALIKE = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеорсухѕіјһԁӏԛԝ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονι",
    "ABESIJKMHOPCTYXaeopcyxsijhdlqw" + "ABEZHIKMNOPTYXovi",
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_LATIN = re.compile(r"[A-Za-z]")
# Full-width and mathematical letters: whole alphabets that are Latin in another dress.
_DRESSED = re.compile("[\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff]")


class Refused(ValueError):
    """Why a file or a word was not taken: "<where>: <what is wrong>; got <value>; <the fix>"."""


def hidden(text: str) -> re.Match[str] | None:
    """The first sign of a text that nobody sees, or that turns the text around."""
    return None if text.isascii() and text.isprintable() else HIDDEN.search(text)  # a Hangul filler counts as printable


def words(text: str) -> str | None:
    """What is wrong with a text's letters, without where it stands; None: nothing.

    >>> words("Apple M4, 24 GB, 5 μs ± 0.3 σ") is None
    True
    >>> words("\\u0410pple M4")
    "letters of two alphabets that look alike in one word; got 'Аpple', U+0410; write it in one alphabet"
    """
    if sign := hidden(text):
        return f"a character nobody sees, or that turns the text around; got U+{ord(sign[0]):04X}; delete it"
    if text.isascii():
        return None
    if dressed := _DRESSED.search(text):
        return f"a letter of a full-width or mathematical alphabet; got U+{ord(dressed[0]):04X}; write plain letters"
    for word in _WORD.findall(text):
        if _LATIN.search(word) and (plain := word.translate(ALIKE)) != word:
            odd = next(a for a, b in zip(word, plain, strict=True) if a != b)
            return f"letters of two alphabets that look alike in one word; got {word[:40]!r}, U+{ord(odd):04X}; write it in one alphabet"
    return None


def visible(text: str) -> str:
    r"""A text with a space for each sign nobody sees: for what programs and systems say, before it is recorded.

    >>> visible("\x1b[31mfailed")
    ' [31mfailed'
    """
    return HIDDEN.sub(" ", text)


def unfit(value: Any, where: str = "") -> Iterator[str]:
    """Every text in plain Python that a file could not be read with: "<dotted key>: <what is wrong>"."""
    if isinstance(value, str):
        if wrong := words(value):
            yield f"{where}: {wrong}"
    elif isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from unfit(inner, f"{where}.{key}".lstrip("."))
            if isinstance(key, str) and (wrong := words(key)):
                yield f"{where}: {wrong}"


def name(text: str) -> str:
    """A name that cannot pass for another.

    Raises:
        ValueError: blank, or a word that only looks Latin.

    >>> name("Apple M4")
    'Apple M4'
    """
    if not text.strip():
        raise ValueError("a name is blank")
    for word in [] if text.isascii() else _WORD.findall(text):
        if word.translate(ALIKE).isascii() and not word.isascii():
            raise ValueError(f"a word of another alphabet that looks Latin; got U+{ord(word[0]):04X} for {word.translate(ALIKE)[0]!r}; write it in Latin letters")
    return text


def read_bytes(path: Path) -> bytes:
    """The bytes of a YAML file.

    Raises:
        OSError: it cannot be read.
        Refused: no plain file, or too large; said before it is read.
    """
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise Refused("file: neither a file nor a folder; got a device, a pipe or a socket")
    if about.st_size > MAX_YAML_BYTES:
        raise Refused(too_large(about.st_size, MAX_YAML_BYTES))
    return path.read_bytes()


def plain(data: bytes) -> str:
    """Bytes of a YAML file as its text.

    Raises:
        ValueError: not UTF-8.
        Refused: signs nobody sees.
    """
    text = data.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if sign := hidden(text.replace("\n", " ")):
        line = text.count("\n", 0, sign.start()) + 1
        raise Refused(f"line {line}: a character nobody sees, or that turns the text around; got U+{ord(sign[0]):04X}; delete it")
    return text


def too_large(size: int, limit: int) -> str:
    """The problem of a file that is never opened."""
    return f"file: too large, so it is not read; got {size:,} bytes; at most {limit:,}"


def tree(root: Path) -> tuple[dict[Path, str], dict[str, list[str]]]:
    """Whatever below a folder is no plain file or folder, or too large, with why; and the names of the files in each folder below it.

    No file is opened, and of a link to a folder only the names are read. A folder goes by its place below `root`, "" for `root` itself.
    """
    found: dict[Path, str] = {}
    names: dict[str, list[str]] = {}
    folders = [""]
    while folders:
        place = folders.pop()
        here = names[place] = []
        try:
            entries = list(os.scandir(root / place))
        except OSError:
            continue  # said by the loader, with the folder's name
        for entry in entries:
            below = f"{place}/{entry.name}".lstrip("/")
            if entry.is_dir(follow_symlinks=False):
                folders.append(below)
                continue
            here.append(entry.name)
            if entry.is_symlink():
                found[Path(entry.path)] = f"file: a symbolic link; got one to {os.readlink(entry.path)[:80]!r}; put the file itself there"
                with contextlib.suppress(OSError):
                    names[below] = os.listdir(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                found[Path(entry.path)] = "file: neither a file nor a folder; got a device, a pipe or a socket"
            else:
                limit = MAX_YAML_BYTES if entry.name.endswith(".yml") else MAX_OTHER_BYTES
                size = entry.stat(follow_symlinks=False).st_size
                if size > limit:
                    found[Path(entry.path)] = too_large(size, limit)
    return found, names


def inside(root: Path, path: Path) -> bool:
    """Whether a place below a folder is there itself: no link on the way, no more bytes than are ever read."""
    try:
        return path.resolve() == root.resolve() / path.relative_to(root) and path.stat().st_size <= MAX_OTHER_BYTES
    except OSError:
        return False


FORMULA = frozenset("=+-@\t\r＝＋－＠")  # what a spreadsheet takes for the beginning of one


def not_a_formula(cell: object) -> object:
    """A cell's words, with an apostrophe before what a spreadsheet would run.

    Source: OWASP, CSV injection.

    >>> not_a_formula("=HYPERLINK(1)"), not_a_formula("a = b"), not_a_formula(-3.5)
    ("'=HYPERLINK(1)", 'a = b', -3.5)
    """
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in FORMULA else cell


def said(error: Exception) -> str:
    r"""What an error says, on one line; its kind where it says nothing.

    >>> said(ValueError("cut off\nat byte 3")), said(KeyError())
    ('cut off', 'KeyError')
    """
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
