"""Records of attacks on the lab itself: what was broken on purpose, how often, and what was lost by it."""

from __future__ import annotations

from pydantic import AwareDatetime, model_validator

from macros.fields import Count, Document, Id, NotNegative, Strict, key


class Trial(Strict):
    """One kind of fault, done to one command."""

    fault: str = key("What was done", "kill -9 of the bench at a random moment")
    command: str = key("What it was done to", "make bench")
    times: Count = key("How often", 80)
    planned: Count | None = key("How often it was to be; only where it was broken off before", 200, default=None)
    hit: NotNegative = key("How often it came in time to break something off", 74)
    lost: NotNegative = key("Finished tests, sealed inks or recorded runs that were gone afterwards", 0)
    half: NotNegative = key("How often a half-written file was read, or the lab did not load", 0)
    went_on: NotNegative = key("How often the same command, given again, went on and ended well", 80)
    outcome: str = key("What happened, in words", "The next bench continued the run")

    @model_validator(mode="after")
    def counted(self) -> Trial:
        if max(self.hit, self.half, self.went_on) > self.times:
            raise ValueError(f"hit, half and went_on are at most times; got {self.hit}, {self.half} and {self.went_on} of {self.times}")
        return self


class Trials(Document):
    """Faults done on purpose, counted by `make faults`."""

    id: Id = key("File name without .yml", "faults")
    title: str = key("What was asked", "Is anything lost when a command dies?")
    setting: str = key("Where and with what", "2 cores of a virtual machine, Python 3.13")
    started_at: AwareDatetime = key("When it began", "2026-11-30T13:30:00Z")
    seed: NotNegative = key("Of the random moments", 0)
    command: str = key("How to repeat it", "make faults")
    trials: list[Trial] = key("One entry a fault and command", min_length=1)
