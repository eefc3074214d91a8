"""Records of time to first token: a reader's wait, timed end to end."""

from __future__ import annotations

from pydantic import AwareDatetime

from macros.fields import Count, Document, Id, Strict, key
from macros.records import HostDoc, Instrument, Share


class Wait(Strict):
    """One prompt length and its repetitions."""

    n_prompt: Count = key("Tokens of the prompt, as tokenised", 512)
    samples_ns: list[Count] = key("From the prompt as text to the first word of the answer, each repetition [ns]", [2410000000], min_length=1)


class Latency(Document):
    """Time to first token of one model on one machine, from short prompts to long ones."""

    id: Id = key("File name without .yml", "apple-m4-24gb-2026-11-30-041000")
    machine: Id = key("A file in labdata/machines", "apple-m4-24gb")
    model: Id = key("A file in labdata/models", "qwen3-8b-q4_k_m")
    started_at: AwareDatetime = key("When it began", "2026-11-30T04:10:00Z")
    command: str = key("How to repeat it", "make ttft")
    instrument: Instrument = key("What measured")
    host: HostDoc = key("The machine at that moment")
    backend: str = key("Backend truly used", "Metal")
    n_threads: Count = key("CPU threads", 4)
    load_before: Share = key("Share of all cores in use before it, while the bench itself waits [1]", 0.1)
    words: bool = key("Whether the prompt was text; false: token ids, as a file without a vocabulary has no words", True)
    waits: list[Wait] = key("One entry a prompt length", min_length=1)
