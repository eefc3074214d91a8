"""Records of what the lab's own commands take: time and memory by the size of the lab, written by `make perf`."""

from __future__ import annotations

from pydantic import AwareDatetime, model_validator

from macros.fields import Count, Document, Id, NotNegative, Positive, Strict, key
from macros.records import Share


class Cost(Strict):
    """One command, once, in a process of its own."""

    what: str = key("What was done", "cold build")
    machines: NotNegative = key("Machines in the lab; 0: it does not matter", 200)
    runs: NotNegative = key("Runs in the lab; 0: it does not matter", 2000)
    wall_s: Positive = key("From start to end [s]", 7.9)
    cpu_s: Positive = key("CPU time of the process and its children [s]", 8.1)
    peak_bytes: Count = key("Most memory at once, of the largest process [B]", 310000000)
    limit_s: Positive | None = key("What it may take [s]; null: no limit set", 10)
    limit_bytes: Count | None = key("Memory it may take [B]; null: no limit set", 1000000000)


class Costs(Document):
    """What load, check, build, import and predictions took on one machine, by `make perf`."""

    id: Id = key("File name without .yml", "2026-11-30-1500")
    setting: str = key("Where and with what", "2 cores of a virtual machine, Python 3.13")
    started_at: AwareDatetime = key("When it began", "2026-11-30T15:00:00Z")
    load_before: Share = key("Share of all cores in use before it [1]", 0.05)
    command: str = key("How to repeat it", "make perf RECORD=1")
    costs: list[Cost] = key("One entry a command and size", min_length=1)

    @model_validator(mode="after")
    def once_each(self) -> Costs:
        seen = [(c.what, c.machines) for c in self.costs]
        if len(seen) != len(set(seen)):
            raise ValueError("costs: a command and size given twice")
        return self
