"""Numbers typed in the narrative that should have come from a macro; a legitimate constant is marked with its reason.

    [# typed "512 tokens": the length of pp512, by definition #]

stands anywhere in the page, is not published, and holds for that very literal on that page.
"""

from __future__ import annotations

import re
from pathlib import Path

UNITS = (
    r"%|‰|per\s?cent|×|x|times|-fold|tok/s|tokens?(?:\s+per\s+second|/s)?|TB/s|GB/s|MB/s|GiB/s|B/s|[KMGT]i?B|bytes?|-?bits?|"
    r"TFLOPS?(?:/s)?|GFLOPS?(?:/s)?|FLOPs?(?:/s|/B)?|B|ns|µs|ms|s|seconds?|minutes?|hours?|h|W|J|V|°C|GHz|MHz|σ|billion|million|"
    r"parameters|layers|heads|cores|threads|repetitions|k"
)
WORDS = (
    "two three four five six seven eight nine ten eleven twelve fifteen sixteen twenty thirty forty fifty sixty seventy eighty ninety "
    "hundred thousand half"
).split()
_DIGITS = r"[−+~≈-]?\d[\d,]*(?:\.\d+)?"
_WORD = rf"(?:{'|'.join(WORDS)})"
_NUMBER = rf"(?:{_DIGITS}(?:\s*(?:–|-|to|±|and)\s*{_DIGITS})?|{_WORD}(?:\s+(?:to|or|and)\s+{_WORD})?)"
TYPED = re.compile(
    rf"(?<![\w.,/@-]){_NUMBER}\s*(?:{UNITS})(?![\w/])"  # a number with a unit
    rf"|(?<![\w.,/@-])\d+(?:\.\d+)?\s*(?:of|in|:|out of)\s*\d+(?:\.\d+)?(?![\w/])"  # a ratio
    rf"|×\s*\d[\d.]*",  # a factor
    re.IGNORECASE,
)
RESULT = re.compile(r"\b(?:derived|predicted|percent|times)\(\s*-?\d[\d._]*(?:e[+-]?\d+)?\s*,")
MARKER = re.compile(r"\[#\s*typed\s+\"(?P<literal>[^\"]+)\"\s*:\s*(?P<reason>.*?)\s*#\]", re.S)
_ANY_MARKER = re.compile(r"\[#\s*typed\b.*?#\]", re.S)
# What is not narrative: code, macros and what they are given, tags, link targets, table rules.
_HIDDEN = [
    re.compile(p, re.S | re.M)
    for p in (r"^```.*?^```", r"`[^`\n]+`", r"\[\[.*?\]\]", r"\[%.*?%\]", r"\[#.*?#\]", r"</?[a-zA-Z!][^<>]*>", r"\]\([^)\n]*\)", r"\{[:.#][^}\n]*\}")
]
_SPOKEN = ("title:", "description:", "answer:")  # of the front matter; a question holds no result


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[\u00a0\u202f]", " ", text).split()).casefold()


def _blank(match: re.Match) -> str:
    """As long, on as many lines, and without a word."""
    return re.sub(r"[^\n]", "\0", match[0])


def found(text: str) -> list[tuple[int, str]]:
    """Typed numbers of a page: (line, literal), marked or not.

    >>> found("It drew 87 % of [[ roof ]], `2 GB` aside; pp512 is a name, and so is Q4_K_M.")
    [(1, '87 %')]
    >>> found("[[ derived(16.05, 'tok/s') ]] was ten to twenty times 1.73×")
    [(1, 'derived(16.05,'), (1, 'ten to twenty times'), (1, '1.73×')]
    """
    hits = [(m.start(), m[0]) for m in RESULT.finditer(text)]
    head = re.match(r"---\n.*?\n---\n", text, re.S)
    if head:
        kept = [line if line.startswith(_SPOKEN) else re.sub(r".", "\0", line) for line in head[0].split("\n")]
        text = "\n".join(kept) + text[head.end() :]
    for pattern in _HIDDEN:
        text = pattern.sub(_blank, text)
    hits += [(m.start(), m[0]) for m in TYPED.finditer(text)]
    return [(text.count("\n", 0, at) + 1, _plain(literal)) for at, literal in sorted(hits)]


def problems(docs: Path) -> list[str]:
    """Every typed number below `docs` without a marker, and every marker without a number or a reason; one line each."""
    lines = []
    for path in sorted(docs.rglob("*.md")):
        text, shown = path.read_text(encoding="utf-8"), f"docs/{path.relative_to(docs).as_posix()}"
        hits = found(text)
        marked = {_plain(m["literal"]): m for m in MARKER.finditer(text)}
        lines += [f"{shown}: line {line}: a number typed by hand; got {literal!r}; a macro computes it, or its reason is marked: [# typed \"{literal}\": why #]"
                  for line, literal in hits if literal not in marked]  # fmt: skip
        used = {literal for _, literal in hits}
        for literal, m in marked.items():
            line = text.count("\n", 0, m.start()) + 1
            if literal not in used or not m["reason"]:
                wrong = "marks no number of this page" if literal not in used else "gives no reason"
                lines.append(f"{shown}: line {line}: a marker that {wrong}; got {literal!r}; known: {', '.join(sorted(used)) or 'none'}")
        for m in _ANY_MARKER.finditer(text):
            if not MARKER.fullmatch(m[0]):
                lines.append(f"{shown}: line {text.count(chr(10), 0, m.start()) + 1}: not a marker; got {_plain(m[0])!r}; write [# typed \"87 %\": why #]")
    return lines
