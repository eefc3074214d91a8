"""The machine around a test: load, clock, heat, and what a virtual machine's host took; and waiting for calm.

What the operating system does not tell is None.
"""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from bench import host as hosts

QUIET_LOAD = 0.1  # share of the cores in use up to which a machine counts as idle
PATIENCE_S = 600  # in all, over a whole run
LOOK_S = 5  # between two looks
CPUS = Path("/sys/devices/system/cpu")


@dataclass(frozen=True)
class Moment:
    """What the machine said at one moment; counters run since boot."""

    at_s: float
    load: float | None = None
    cpu_mhz: float | None = None
    celsius: float | None = None
    speed_limit: float | None = None
    throttles: int | None = None
    stolen_s: float | None = None


def look(share: Callable[[], float] = partial(hosts.busy_share, hosts.SHORTEST_S)) -> Moment:
    """The machine now, and the share of the cores that others use, as `share` tells it."""
    load = share()
    now = time.monotonic()
    if platform.system() == "Darwin":
        return Moment(now, load, speed_limit=speed_limit_macos(hosts.run("pmset", "-g", "therm")))
    return Moment(now, load, _mhz(), _celsius(), None, _throttles(), getattr(psutil.cpu_times(), "steal", None))


def _numbers(pattern: str, root: Path) -> list[int]:
    texts = (hosts.read(path).strip() for path in sorted(root.glob(pattern)))
    return [int(text) for text in texts if text.isdigit()]


def _mhz(root: Path = CPUS) -> float | None:
    """Mean clock of the cores [MHz]. Without a frequency driver, as in most virtual machines, the figure in /proc/cpuinfo is a label."""
    found = _numbers("cpu[0-9]*/cpufreq/scaling_cur_freq", root)  # in kHz
    return round(sum(found) / len(found) / 1000, 1) if found else None


def _celsius() -> float | None:
    """The hottest of the CPU's own sensors [°C]: a disk's or a battery's says nothing here."""
    sensors = psutil.sensors_temperatures() if hasattr(psutil, "sensors_temperatures") else {}
    found = [s.current for name, group in sensors.items() for s in group
             if name.startswith(("coretemp", "k10temp", "zenpower", "cpu", "soc"))]  # fmt: skip
    return max(found, default=None)


def _throttles(root: Path = CPUS) -> int | None:
    """Thermal throttle events since boot, summed over the CPUs (Intel's driver counts them)."""
    found = _numbers("cpu[0-9]*/thermal_throttle/core_throttle_count", root)
    return sum(found) if found else None


def speed_limit_macos(pmset_therm: str) -> float | None:
    """`pmset -g therm`: the share of its full speed the CPU is allowed (fraction); None where it does not say.

    >>> speed_limit_macos("CPU Power notify\\n\\tCPU_Scheduler_Limit \\t= 100\\n\\tCPU_Speed_Limit \\t= 81\\n")
    0.81
    >>> speed_limit_macos("Note: No CPU power status has been recorded") is None
    True
    """
    match = re.search(r"CPU_Speed_Limit\s*=\s*(\d+)", pmset_therm)
    return int(match.group(1)) / 100 if match else None


def around(before: Moment, after: Moment) -> dict[str, object]:
    """What a sitting keeps of the moments before and after it; what was not told is left out.

    Keys: as in `macros.records.Sitting`.
    """
    pairs: dict[str, object] = {name: [getattr(before, name), getattr(after, name)] for name in ("load", "cpu_mhz", "celsius", "speed_limit")}
    kept = {name: pair for name, pair in pairs.items() if name == "load" or pair != [None, None]}
    if before.throttles is not None and after.throttles is not None:
        kept["throttled"] = max(0, after.throttles - before.throttles)
    if before.stolen_s is not None and after.stolen_s is not None:
        share = (after.stolen_s - before.stolen_s) / (after.at_s - before.at_s) / (psutil.cpu_count() or 1)
        kept["steal"] = round(min(1.0, max(0.0, share)), 3)
    return kept


class Patience:
    """Waits for an idle machine, up to a bound over all waits of a run."""

    def __init__(self, bound_s: float = PATIENCE_S) -> None:
        self.left_s = bound_s

    def wait(self, moment: Moment, say: Callable[[str], None], look_again: Callable[[], Moment] = look, sleep: Callable[[float], None] = time.sleep) -> tuple[Moment, int]:
        """The first idle moment, or the last one there was patience for; and the time waited [s]."""
        start_s, said = moment.at_s, False
        while (moment.load or 0) > QUIET_LOAD and self.left_s > 0:
            if not said:
                say(f"Waiting for an idle machine: {moment.load:.0%} of the cores in use, up to {self.left_s:.0f} s")
                said = True
            sleep(min(LOOK_S, self.left_s))
            before_s, moment = moment.at_s, look_again()
            self.left_s -= moment.at_s - before_s
        if said and self.left_s <= 0:
            say("No longer waiting: the numbers below will say how busy the machine was")
        return moment, round(moment.at_s - start_s)
