"""A log's bytes as lines of text, whatever was done to it on its way here: pure."""

from __future__ import annotations

import codecs
import html
import re

MAX_BYTES = 32 * 2**20  # a log is kept word for word in labdata/raw; 10,000 rows of jsonl are 12 MB
ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
QUOTE = re.compile(r"^(?:\s*>)+ ?")
# A person's folder or shell prompt: what the raw text should not give away unnoticed.
HOME = re.compile(r"/(?:home|Users)/[^/\s\"']+|[A-Za-z]:\\+Users\\+[^\\\s\"']+")
PROMPT = re.compile(r"(?<![\w.-])[\w.-]{1,64}@[\w.-]{1,64}(?=[:~ ].{0,200}[$#%])")


class Refused(Exception):
    """Why nothing of a file was taken, in one line without the file's name."""


def decode(data: bytes) -> str:
    """The text of a log; a byte that is no UTF-8 becomes U+FFFD (a Latin-1 ± is still read as one).

    Raises:
        Refused: empty, too large, or not text.
    """
    if len(data) > MAX_BYTES:
        raise Refused(f"size: too large to keep word for word; got more than {MAX_BYTES >> 20} MiB; cut the tables or records out of it")
    if not data.strip():
        raise Refused("content: nothing in it; got an empty file; llama-bench's output was expected")
    if data.startswith(b"GGUF"):
        raise Refused("content: a model, not a log; got a GGUF file; make bench MODEL=FILE runs it")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")  # what PowerShell's > writes
    else:
        text = data.decode("utf-8-sig", "replace")
    strange = len(re.findall(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]", text))
    if "\x00" in text or strange > len(text) * 0.05 + 8:
        raise Refused("content: not text; got binary data; llama-bench's output was expected")
    return text


def lines(text: str) -> list[str]:
    """Lines without colours, quoting marks ("> ") and the prefix of server-sent events."""
    text = ANSI.sub("", text).replace("\ufeff", "")  # one stands before each of several files put together
    return [re.sub(r"^data: (?=\{)", "", QUOTE.sub("", line)).rstrip() for line in re.split(r"\r\n|\n|\r", text)]


def cells(line: str) -> list[str]:
    r"""A markdown row's cells: outer pipes, bold, code, links and entities taken off.

    >>> cells("| **llama 7B** | `pp 512` | [54ef9cfc](https://example.org) | 13.88 &plusmn; 0.00 |")
    ['llama 7B', 'pp 512', '54ef9cfc', '13.88 ± 0.00']
    """
    body = line.strip()
    if "|" not in body:
        return [body]
    body = body[1:] if body.startswith("|") else body
    body = body[:-1] if body.endswith("|") and not body.endswith("\\|") else body
    return [_cell(part) for part in re.split(r"(?<!\\)\|", body)]


def _cell(text: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"</?(?:b|i|strong|em|code|sub|sup)>|\*\*|`", "", text)
    return " ".join(html.unescape(text).replace("\\|", "|").split())


def personal(text: str) -> list[str]:
    """Home folders and shell prompts in a text, each once."""
    return sorted({*HOME.findall(text), *(found for line in text.splitlines() if "@" in line for found in PROMPT.findall(line))})
