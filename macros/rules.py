"""The rules that decide verdicts, as the method page states them: each from the constant that the code itself uses."""

from __future__ import annotations

from typing import Any

from macros import compare, noise, predict, values
from macros.inks import DIRECTIONS


def rules() -> dict[str, Any]:
    """Every bound by name: shares as percentages, directions as what their words allow."""
    return {
        "tolerance": values.percent(compare.TOLERANCE, "spec", 0),
        "noise_sigmas": values.Value(compare.NOISE_SIGMAS, "", "spec", decimals=0),
        "same": compare.SAME,
        "noisy_sigma": values.percent(compare.NOISY_SIGMA, "spec", 0),
        "directions": {w: (low, high) for w, (low, high) in DIRECTIONS.items()},
        "rule_of_thumb": [values.percent(share, "predicted", 0, how=predict.RULE_SOURCE) for share in predict.RULE_OF_THUMB],
        "busy_load": values.percent(compare.BUSY_LOAD, "spec", 0),
        "stolen": values.percent(compare.STOLEN, "spec", 0),
        "alpha": values.percent(noise.ALPHA, "spec", 0),
        "matters": values.percent(noise.MATTERS, "spec", 0),
    }


def verdict_list() -> str:
    """What each verdict says, as HTML."""
    items = (f"<dt>{values.verdict_html(word)}</dt> <dd>{why}</dd>" for word, why in compare.VERDICTS.items())
    return f'<dl class="verdicts">{"".join(items)}</dl>'
