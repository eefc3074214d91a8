"""The wait before the first word, and the stream after it: one talk shown live, or many prompts timed.

The child (`python -m bench.chat`) writes events as `bench.engine` does:

    {"event": "first", "ns": n, "n_prompt": n, "text": t}    from the prompt as text to the first word
    {"event": "token", "text": t}                            one for each later word
    {"event": "stream", "ns": n, "n_tokens": n}              first word to last
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench import engine
from bench.engine import Job


@dataclass(frozen=True, kw_only=True)
class ChatJob(Job):
    """What to say, or how long the prompts to time are; `n_prompt` is the context kept for a prompt."""

    prompt: str = ""
    lengths: tuple[int, ...] = ()


def run(job: ChatJob, on_event: Callable[[dict], None]) -> dict[str, object]:
    """Hold a talk in a child process; its facts.

    Raises:
        EngineFailed: as `engine.run`
    """
    return engine.run(job, on_event, module="bench.chat").facts


def _measure(job: ChatJob, emit: Callable[..., None]) -> None:
    from bench.llama_text import Talk

    llama = Talk(job)
    emit("loaded", **llama.facts(), words=llama.words)
    llama.prefill(llama.chunks(llama.tokens(1)))  # the first touch of the weights is no wait of a reader's
    if not job.lengths:
        _talk(llama, job, emit)
    prompts = [llama.prompt(n) for n in job.lengths]
    for rep in range(job.reps if prompts else 0):
        for prompt in prompts if rep % 2 == 0 else reversed(prompts):  # drift favours no length
            llama.clear()
            start_ns = time.perf_counter_ns()
            n_prompt, token = llama.first(prompt)
            text = llama.piece(token)
            emit("first", ns=time.perf_counter_ns() - start_ns, n_prompt=n_prompt, text=text.decode(errors="replace"))
    emit("done")


def _talk(llama, job: ChatJob, emit: Callable[..., None]) -> None:
    llama.clear()
    letters = codecs.getincrementaldecoder("utf-8")(errors="replace")  # a token may end within a letter
    start_ns = time.perf_counter_ns()
    said = llama.templated(job.prompt) if llama.words else llama.tokens(max(1, len(job.prompt.split())))
    n_prompt, token = llama.first(said)
    first = letters.decode(llama.piece(token))
    first_ns = last_ns = time.perf_counter_ns()
    emit("first", ns=first_ns - start_ns, n_prompt=n_prompt, text=first)
    n_tokens = 0
    one = llama.tokens(1)
    while n_tokens < job.n_gen - 1 and not llama.over(token):
        one[0] = token
        llama.decode(one)
        token = llama.choose()
        text = letters.decode(llama.piece(token))
        last_ns, n_tokens = time.perf_counter_ns(), n_tokens + 1
        emit("token", text=text)
    emit("stream", ns=last_ns - first_ns, n_tokens=n_tokens)


if __name__ == "__main__":
    engine.serve(ChatJob, _measure)
