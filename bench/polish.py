"""`POLISH=model.gguf`: a local model may rephrase a draft, paragraph by paragraph; numbers, names, links and claims are locked.

Each locked part is a mark in what the model sees. Its answer counts only if every mark comes back once, nothing else
that can be true or false came in, and the whole passes the truth check; on any difference the original stands.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from bench import chat, host
from macros import posts, prose, truth
from macros.posts import Draft

MARK = "⟦{}⟧"
_MARK = re.compile(r"⟦(\d+)⟧")
_WORDS = re.compile(rf"{truth.CLAIM.pattern}|{truth.VERDICT.pattern}|{truth.WITHIN.pattern}".replace("?P<word>", "?:").replace("?P<verdict>", "?:").replace("?P<far>", "?:"), re.I)
_LOCKED = [re.compile(f"{truth.BORNE_OUT[0]}[^{truth.BORNE_OUT[1]}]*{truth.BORNE_OUT[1]}"), prose.LINK, re.compile(r"“[^”]*”"), prose.NAME, prose.FIGURE, _WORDS]
ASK = ("Rephrase the text below in plain, calm English, about as long as it is. Keep every mark such as ⟦1⟧ exactly once, in its "
       "place in the sense. Add no facts and no numbers. Answer with the text alone.\n\n{}")  # fmt: skip
LONGEST = 3.0  # times as long as the paragraph: an answer beyond is no rephrasing


def draft(d: Draft, model: str, known: truth.Known, say: Callable[[str], None], ask: Callable[[str], str] | None = None) -> Draft:
    """A draft as a local model puts it, where that is as true and no longer than the place allows.

    Args:
        model: a GGUF file
        ask: what answers a prompt; by default the model, in a process of its own
    """
    ask = ask or (lambda prompt: answer(model, prompt))
    parts, kept, all_of = [], 0, 0
    for part in d.parts:
        paragraphs = []
        for original in part.split("\n\n"):
            new = rephrased(original, known, ask) if re.search(r"[^\W\d_]{3}", original) and not original.startswith(("|", "http")) else original
            kept, all_of = kept + (new == original), all_of + 1
            paragraphs.append(new)
        text = "\n\n".join(paragraphs)
        parts.append(part if d.place.limit and d.place.count(truth.bare(text)) > d.place.limit else text)
    say(f"POLISH: {d.place.title}: {all_of - kept} of {all_of} paragraphs rephrased; the others stand as they were")
    return posts.Draft(d.place, parts, d.over)


def rephrased(original: str, known: truth.Known, ask: Callable[[str], str]) -> str:
    """One paragraph rephrased, or the original where anything that counts would differ."""
    masked, locked = lock(original)
    reply = ask(ASK.format(masked)).strip()
    if Counter(_MARK.findall(reply)) != Counter(map(str, range(len(locked)))) or len(reply) > LONGEST * len(masked):
        return original
    new = _MARK.sub(lambda m: locked[int(m[1])], reply)
    rest = _MARK.sub("", reply)
    if prose.figures(rest) or prose.names(rest) or prose.links(rest) or _WORDS.search(rest) or lock(new)[1] and Counter(lock(new)[1]) != Counter(locked):
        return original
    return original if truth.problems(new, known) else new


def lock(text: str) -> tuple[str, list[str]]:
    """A text with marks in place of all that must not change, and those parts in order."""
    spans: list[tuple[int, int]] = []
    for pattern in _LOCKED:
        for m in pattern.finditer(text):
            if not any(a < m.end() and m.start() < b for a, b in spans):
                spans.append(m.span())
    masked, locked, at = [], [], 0
    for a, b in sorted(spans):
        masked += [text[at:a], MARK.format(len(locked))]
        locked.append(text[a:b])
        at = b
    return "".join([*masked, text[at:]]), locked


def answer(model: str, prompt: str) -> str:
    """What a local model says to a prompt, greedily, in a process of its own.

    Raises:
        EngineFailed: it could not be loaded.
    """
    words: list[str] = []
    job = chat.ChatJob(model_path=str(Path(model).resolve()), n_prompt=len(prompt.encode()) + 512, n_gen=max(64, len(prompt)), n_threads=host.default_threads(host.collect()),
                       n_gpu_layers=-1, prompt=prompt)  # fmt: skip
    chat.run(job, lambda event: words.append(event["text"]) if event["event"] in ("first", "token") else None)
    return "".join(words)
