"""Which test sits when: repetitions spread over rounds, the order turned every round.

A round runs every test of the plan once, forwards and backwards in turn (a b c, c b a, ...), so that
a machine which warms up or slows down favours no setting. With one round this is llama-bench's own order:
all of a test's repetitions, then the next test's. The state is the record itself, so that a run cut off
anywhere goes on where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass

from macros import noise
from macros.records import Result, Sitting

CAP = 30  # repetitions, where they are added until the mean is known well enough
PRECISION = 0.01  # half the 95 % interval of the mean over the mean, at which no more are added


@dataclass(frozen=True)
class Schedule:
    """How often each test is repeated, and in how many rounds; `auto`: more until the mean is known to 1 %."""

    reps: int
    rounds: int = 1
    auto: bool = False

    def share(self, number: int) -> int:
        """Repetitions of each test in a round; what does not divide goes to the first ones.

        >>> [Schedule(5, 2).share(r) for r in (0, 1, 2)], [Schedule(3, 5).share(r) for r in range(5)]
        ([3, 2, 3], [1, 1, 1, 0, 0])
        """
        if number >= self.rounds:
            number = 0
        return self.reps // self.rounds + (number < self.reps % self.rounds)

    def enough(self, result: Result) -> str | None:
        """Why a test needs no more repetitions; None: it needs more, or lost some to a failure."""
        n = len(result.samples_ns or [])
        if n < self.reps:
            return None
        if not self.auto:
            return "repetitions"
        if noise.half_width([result.n_tokens / ns for ns in result.samples_ns or []]) <= PRECISION:
            return "interval"
        return "cap" if n >= CAP else None

    def over(self, result: Result) -> bool:
        """Whether a test has had its sittings; one that failed in a later round is not tried for ever."""
        most = CAP if self.auto else self.rounds
        return bool(result.failed or self.enough(result)) or _rounds(result) >= most

    def next(self, results: list[Result], n_tests: int) -> tuple[int, int] | None:
        """(number of the test, repetitions) of the next sitting; None: the plan is done.

        Args:
            results: those on disk so far, in the plan's order
        """
        if len(results) < n_tests:
            return len(results), self.share(0)
        open_ = [i for i, r in enumerate(results) if not self.over(r)]
        if not open_:
            return None
        # The round that is under way is the least any of them has; every other one runs backwards.
        number = min(_rounds(results[i]) for i in open_)
        waiting = [i for i in open_ if _rounds(results[i]) == number]
        reps = max(1, self.share(number))
        if self.auto:
            reps = min([reps, *(max(1, CAP - len(results[i].samples_ns or [])) for i in waiting)])
        return (waiting[-1] if number % 2 else waiting[0]), reps


def _rounds(result: Result) -> int:
    """Sittings a result has had; records from before they were kept had one."""
    return len(result.sittings) or 1


def turn(results: list[Result], number: int) -> int:
    """The round a test's next sitting belongs to, from 0."""
    return _rounds(results[number]) if number < len(results) else 0


def merged(old: Result | None, new: Result, schedule: Schedule) -> Result:
    """A test's result with one more sitting, which failed or not: samples in the order they were taken."""
    if old is None:
        both = new
    else:
        loads = [x for x in (old.load_before, new.load_before) if x is not None]
        both = old.model_copy(update={
            "samples_ns": [*(old.samples_ns or []), *(new.samples_ns or [])],
            "sittings": [*old.sittings, *new.sittings],
            "load_before": max(loads, default=None),
        })  # fmt: skip
    return both if both.failed else both.model_copy(update={"stopped": schedule.enough(both)})


def sitting(result: Result, **around: object) -> Result:
    """A fresh result with what was seen around its one sitting."""
    if result.failed:
        around["failed"] = result.failed
    one = Sitting(n=len(result.samples_ns or []), started_at=result.started_at, **around)
    return result.model_copy(update={"sittings": [one]})
