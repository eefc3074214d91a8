"""What a chip's name says: its vendor, generation and full-rate peak. Names in, facts out.

Standard library only. A name that fits no rule is a chip of its own generation: the predictor then
leans on what its backend's chips share.
"""

from __future__ import annotations

import re
from functools import lru_cache

# First match wins. Marketing names: the series number is the generation.
GENERATIONS = (
    ("apple", r"Apple M(\d+)", r"m\1"),
    ("cpu", r"\(CPU\)|EPYC|Xeon|Core i\d|Ryzen \d \d{4}X|Raspberry|RK3588|Graviton", "cpu"),
    ("nvidia", r"GTX 10\d\d|Tesla P\d+|P40|P100|Titan X", "pascal"),
    ("nvidia", r"V100|Titan V", "volta"),
    ("nvidia", r"RTX 20[5-9]0|Quadro RTX|GTX 16\d\d|\bT4\b|Titan RTX", "turing"),
    ("nvidia", r"GB10|DGX Spark", "gb10"),
    ("nvidia", r"\bH100|\bH200|\bGH200", "hopper"),
    ("nvidia", r"RTX 50[5-9]0|RTX PRO \d000|\bB[23]00|Thor", "blackwell"),
    ("nvidia", r"RTX 40[5-9]0|\bAda\b|\bL40S?\b|\bL4\b", "ada"),
    ("nvidia", r"RTX 30[5-9]0|RTX A\d+|\bA40\b|\bA100|\bA10G?\b|\bA30\b|\bA16\b|\bA2\b|Orin", "ampere"),
    ("amd", r"RX 9\d\d\d|R9700", "rdna4"),
    ("amd", r"RX 7\d\d\d|W7\d00|Ryzen AI|Z1 Extreme|780M|Strix|8060S", "rdna3"),
    ("amd", r"RX 6\d\d\d|W6\d00|Ryzen 6000|680M", "rdna2"),
    ("amd", r"Instinct|\bMI\d+", "cdna"),
    ("intel", r"Arc (Pro )?B\d", "battlemage"),
    ("intel", r"Arc (Pro )?A\d", "alchemist"),
    ("qualcomm", r"Adreno|Snapdragon", "adreno"),
    ("amd", r"Radeon|\bRX\b|Ryzen|Vega", "other amd"),
    ("nvidia", r"GeForce|Quadro|Tesla|Jetson|\bRTX\b|\bGTX\b", "other nvidia"),
    ("intel", r"Intel|Iris|\bUHD\b|\bArc\b", "other intel"),
)
GEFORCE = re.compile(r"RTX [2345]0[5-9]0")
# One AVX2 core: two 8-wide fused multiply-adds a cycle at 3 GHz. Assumed; the fit finds the share reached.
CPU_THREAD_FLOPS_S = 2 * 8 * 2 * 3e9


@lru_cache(maxsize=1000)  # a corpus names a few chips hundreds of times
def family(chip: str) -> tuple[str, str]:
    """Vendor and generation of a chip by its name.

    >>> family("RTX 3070"), family("Apple M2 Max 30c"), family("Arc Pro B50")
    (('nvidia', 'ampere'), ('apple', 'm2'), ('intel', 'battlemage'))
    """
    for vendor, pattern, generation in GENERATIONS:
        found = re.search(pattern, chip, re.I)
        if found:
            return vendor, found.expand(generation)
    return "other", chip


def full_rate_flops_s(chip: str, listed_flops_s: float) -> float:
    """Peak with fp16 accumulation, the rate llama.cpp's kernels are measured to pass [FLOP/s].

    GeForce cards are listed at half of it (fp32 accumulation is halved on them alone); an RTX 4080
    ran F16 prefill at 119 % of its listed figure (github.com/ggml-org/llama.cpp results).

    >>> full_rate_flops_s("RTX 3070", 40.6e12), full_rate_flops_s("RTX A6000", 154.8e12)
    (81200000000000.0, 154800000000000.0)
    """
    return listed_flops_s * 2 if GEFORCE.search(chip) else listed_flops_s


def backend_family(backend: str, vendor: str) -> str:
    """The backend as the fit groups it: Vulkan by vendor, BLAS as the CPU, Metal with BLAS as Metal.

    >>> backend_family("Metal,BLAS", "apple"), backend_family("Vulkan", "amd"), backend_family("BLAS", "cpu")
    ('Metal', 'Vulkan-amd', 'CPU')
    """
    first = backend.split(",")[0].strip()
    return {"Vulkan": f"Vulkan-{vendor}", "BLAS": "CPU", "HIP": "ROCm"}.get(first, first)


# Build numbers by date, between which llama.cpp's counter runs about evenly. Each from a row of the
# corpus that prints both, or from the release page.
BUILDS_BY_DATE = ((2023.6, 1000), (2023.92, 1550), (2024.4, 2800), (2025.0, 4400), (2025.65, 6100), (2025.88, 6918), (2026.15, 7941), (2026.6, 10068))
# Commits pinned by a results thread for years, whose rows print the hash alone.
PINNED_COMMITS = {"8e672ef": 1550}


def build_number(build: str, date: str) -> int | None:
    """llama.cpp's build number from what a result printed, else from its date; None: neither says.

    >>> build_number("4426e298 (2824)", ""), build_number("b6761", ""), build_number("79c1160", "")
    (2824, 6761, None)
    """
    found = re.search(r"\((\d+)\)", build) or re.match(r"b?(\d{4,5})(?:-|$)", build)
    if found:
        return int(found[1])
    if build in PINNED_COMMITS:
        return PINNED_COMMITS[build]
    if not re.match(r"\d{4}(-\d\d|$)", date):
        return None
    year = int(date[:4]) + int(date[5:7] or 6) / 12
    for (t0, b0), (t1, b1) in zip(BUILDS_BY_DATE, BUILDS_BY_DATE[1:]):
        if year <= t1:
            return max(1, round(b0 + (b1 - b0) * (year - t0) / (t1 - t0)))
    return BUILDS_BY_DATE[-1][1]
