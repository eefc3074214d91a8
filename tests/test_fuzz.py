"""Mutants of real files at every door, a few hundred of them; `make fuzz` does the same for longer, and guided by coverage."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fuzz_targets

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "60"))


@st.composite
def mutants(draw: st.DrawFn, name: str) -> bytes:
    """A seed with a few of its words exchanged, its end cut off now and then, or another seed's end put on."""
    kept = fuzz_targets.seeds(name)
    data = bytearray(draw(st.sampled_from(kept)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        word = re.compile(rb"[\w.]+|[^\w]").match(data, at)
        end = word.end() if word else at
        data[at:end] = draw(st.sampled_from(fuzz_targets.JUNK) | st.binary(max_size=8))
    if draw(st.integers(0, 4)) == 0:
        del data[draw(st.integers(0, len(data))) :]
    if draw(st.integers(0, 8)) == 0:
        data += draw(st.sampled_from(kept))[-500:]
    return bytes(data[: fuzz_targets.MOST])


@pytest.mark.parametrize("name", fuzz_targets.TARGETS)
def test_no_mutant_breaks_a_door(name: str):
    @settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=EXAMPLES < 1000, suppress_health_check=list(HealthCheck))
    @given(mutants(name))
    def no_mutant_breaks(data: bytes) -> None:
        fuzz_targets.TARGETS[name](data)

    no_mutant_breaks()


@pytest.mark.parametrize("name", fuzz_targets.TARGETS)
def test_every_seed_passes_its_door(name: str):
    kept = fuzz_targets.seeds(name)
    assert len(kept) >= 3
    for data in kept:
        fuzz_targets.TARGETS[name](data)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(["\u202e", "\u0410pple", "1e12", "on", "12:30", "=1", "<b>", "[[ 1/0 ]]"])
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3), max_leaves=6)


@settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=EXAMPLES < 1000, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_value_at_any_key_is_taken_or_named(data: st.DataObject):
    """A real document with one of its values, wherever it lies, exchanged for any other."""
    from macros import files

    seed = data.draw(st.sampled_from(fuzz_targets.seeds("document")[:20]))
    content = files.from_text(seed[1:].decode())
    place, key = content, data.draw(st.sampled_from(sorted(content)))
    while isinstance(place[key], (dict, list)) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    place[key] = data.draw(values)
    try:
        text = files.dump(content).encode()
    except UnicodeEncodeError:  # half a surrogate is no text
        return
    fuzz_targets.document(seed[:1] + text)
