"""Units: converted once, at the edge. Inside, everything is SI: B, B/s, FLOP/s, tok/s, s."""

from __future__ import annotations

# unit -> (dimension, factor to the dimension's base unit). Decimal and binary prefixes are
# different units: GB/s on a spec sheet is 1e9 B/s, GiB in llama.cpp is 2**30 B (7 % more).
UNITS: dict[str, tuple[str, float]] = {
    "B": ("bytes", 1.0),
    "KB": ("bytes", 1e3),
    "MB": ("bytes", 1e6),
    "GB": ("bytes", 1e9),
    "TB": ("bytes", 1e12),
    "KiB": ("bytes", 2.0**10),
    "MiB": ("bytes", 2.0**20),
    "GiB": ("bytes", 2.0**30),
    "B/s": ("bytes_s", 1.0),
    "GB/s": ("bytes_s", 1e9),
    "TB/s": ("bytes_s", 1e12),
    "GFLOP/s": ("flops_s", 1e9),
    "TFLOP/s": ("flops_s", 1e12),
    "TOP/s": ("flops_s", 1e12),  # an int8 operation counts where a FLOP would
    "GFLOP": ("flops", 1e9),
    "params": ("params", 1.0),
    "billion": ("params", 1e9),
    "tok/s": ("tok_s", 1.0),
    "1": ("ratio", 1.0),
}


def to_si(value: float, unit: str) -> float:
    """A value in the base unit of its dimension (B, B/s, FLOP/s, params, tok/s, 1).

    Raises:
        ValueError: the unit is unknown; the known ones are named.

    >>> to_si(120, "GB/s")
    120000000000.0
    >>> round(to_si(4.68, "GiB") / 1e9, 2)   # Day 1: the same file in both units
    5.03
    """
    if unit not in UNITS:
        raise ValueError(f"unknown unit; got {unit!r}; known: {', '.join(UNITS)}")
    return value * UNITS[unit][1]


def dimension(unit: str) -> str:
    """The dimension of a unit ("bytes", "bytes_s", "flops_s", ...)."""
    if unit not in UNITS:
        raise ValueError(f"unknown unit; got {unit!r}; known: {', '.join(UNITS)}")
    return UNITS[unit][0]


def from_si(value: float, unit: str) -> float:
    """A base-unit value expressed in `unit`.

    >>> from_si(147456, "KiB")               # Qwen3-8B, f16 cache, one token
    144.0
    """
    return value / to_si(1.0, unit)
