"""The fast reader of YAML says what the careful one says, type for type, or declines."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macros import files, guard, labdata, quick

ROOT = Path(__file__).resolve().parent.parent
UTC = datetime.UTC


def agree(text: str) -> bool:
    """Whether the fast reader takes a text; where it does, the careful one must come to the same (repr tells 1, 1.0 and True apart)."""
    try:
        found = quick.read(text)
    except ValueError:
        return False
    assert repr(found) == repr(files._in_general(text)), text
    return True


SCALARS = [
    *"1 0 -0 -0.0 12.5 1.0e+12 1.5E-3 9.9e+999 4.9e-324 999999999999999999 123456789012345678901 120.30000000000001 null true True tRue nULL false abc yes On nO off y n".split(),
    *"0x1F 0b11 0o17 017 1_000 _1 12:30 1e12 12e03 .inf -.inf .nan inf NaN Infinity 2026-11-30 2026-02-30 2026-11-30T04:10:00Z 2026-01-01-120000-day1".split(),
    *"0.1.0 1.2.3.4 40ebe3b0 0e12345 123e456 0b10 0bff '' \"\" [] {} ~ - ? -1 +1 1. .5 = << | > %x @x `x` &x *x !x !!int [1, 2026-13-01 00 6.18.44-fc-v657".split(),
    "2026-11-30 04:10:00", "2026-01-01 12:00:00+00:00", "2026-01-01 12:00:00.123456Z", "2026-11-30 04:10:00 Z", "2026-1-1 4:10:00", "2026-01-01 12:00:00+02:00",
    "tok/s", "x: y", "a #b", "a#b", "1 2", "14450 tok/s", "2P / (2P + 4)", "0.7 to 0.9 x F", "'it''s'", "'2026-11-30'", "'1'", "'yes'", "'ab'", '"a \\" b"', '"ab"', '"\\u0000"',
    "[1, 2.5, null]", "[1,\n    2]", "[1,\n 2]", "[yes]", "[a, b]", "{a: 1}", "a\n  b", "'a\n  b'", "abc:", "abc ", "a\tb", "http://x.y", "σ ± μ", "18 W", "1 Z",
    "'1024 GB/s by bus'", '"2026-11-30 UTC"', "'12:30:00'", "'12:30:00 Z'", '"a \\\\ b"', '"a \\n b"', "2026-01-01-120000", "2026-13-41-129999",
    "{a: 1, b: 6.2, c: null}", "{a: [x, 2], b: TFLOP/s}", "{a: b, a: c}", "{no: 1}", "{a: no}", "{a: no go, b: 8 MB}", "{a: b:c}", "{a: b:, c: 1}", "{a: 'x, y', b: \"{z}\"}",
    "{a: x?, b: 1}", "{a: x #y}", "{a: 2026-11-30}", "{a: 12:30}", "{a: 1_0}", "{a: 1e5}", "{a: {b: 1}}", "{a: [[1]]}", "{a: b,\n    c: d}", "{a: b,\n c: d}", "{a}", "{a: }", "{a:1}",
    "{a: &x 1}", "{a: *x}", "[a, 1 GB, 'b', true]", "[a b , c]", "[1,]", "{a: 1,}", "[null, nullable]", "[on, one]", "{a: -b}", "{a: http://x.y}",
]  # fmt: skip
KEYS = ["a", "b", "id", "n", "y", "x.y", "k_1", "_1", "yes", "no", "True", "null", "1", "<<", "'q'", "?"]
odd = st.text("einfaxobtzTZ_+-.: 0123456789kG,'#\"[]{}", min_size=1, max_size=9)
lines = st.builds(
    lambda column, dashes, key, value: " " * column + "- " * dashes + key + value,
    st.sampled_from([0, 0, 0, 1, 2, 2, 4, 4, 6]), st.sampled_from([0, 0, 0, 1, 1, 2, 3]),
    st.sampled_from([*(f"{k}: " for k in KEYS), *(f"{k}:" for k in KEYS), "", "", "# "]), st.one_of(st.just(""), st.sampled_from(SCALARS), odd),
)  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(st.lists(lines, min_size=1, max_size=7))
def test_lines_of_any_kind_are_read_alike(found: list[str]):
    agree("\n".join(found) + "\n")


@pytest.mark.parametrize("scalar", SCALARS)
def test_every_odd_scalar_is_read_alike_or_declined(scalar: str):
    for text in (f"a: {scalar}\n", f"- {scalar}\n", f"{scalar}: 1\n", f"a:\n- b: {scalar}\n  c: {scalar}\n", f"a: [{scalar}]\n", f"a: [1, {scalar}]\n",
                 f"a: {{b: {scalar}}}\n", f"- {{b: {scalar}, c: [{scalar}, x]}}\n"):  # fmt: skip
        agree(text)


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=30), st.text("0123456789-:. eE_+xTZ", max_size=12), st.dates(),
    st.text("abc XYZ,.()/'-", max_size=140), st.datetimes(timezones=st.just(UTC)), st.sampled_from(SCALARS),
)  # fmt: skip
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), inner, max_size=4), max_leaves=12)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.from_regex(r"[a-z]{2,8}", fullmatch=True), values, min_size=1, max_size=4))
def test_what_is_written_is_read_alike(value: dict):
    agree(files.dump(value))


def test_every_file_of_the_lab_is_read_alike():
    texts = {path: guard.plain(path.read_bytes()) for folder in ("labdata", "tests/data") for path in sorted((ROOT / folder).rglob("*.yml"))}
    taken = {path for path, text in texts.items() if agree(text)}
    assert taken < set(texts)  # by hand there are other kinds
    assert {p for p in texts if p.name.startswith("2026-11-30") and p.parent.parent.name == "runs" and "amd-epyc" in str(p)} <= taken


def test_what_the_bench_writes_is_taken():
    """No silent loss of speed: whatever a run or an ink of the lab says, written anew, is of the plain kind, but for words folded over lines."""
    lab = labdata.load()
    for document in [*lab.runs.values(), *lab.inks.values()]:
        text = labdata.text(Path("runs/x/x.yml"), document)
        folded = any(isinstance(v, str) and len(v) > 90 for v in _texts(document.model_dump()))
        assert agree(text) or folded or not text.isascii() or document.id.startswith("day"), document.id


def _texts(value: object) -> list[object]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return [value] if inner is None else [t for v in inner for t in _texts(v)]


@pytest.mark.parametrize(("text", "said"), [
    ("a: 1\na: 2\n", "line 2: not valid YAML; key given twice: 'a'"),
    ("a:\n- b: 1\n  b: 2\n", "line 3: not valid YAML; key given twice: 'b'"),
    ("a:\n    b: 1\n  c: 2\n", "line 3: not valid YAML; did not find expected key"),
    ("no: 1\n", "line 1: not valid YAML; a key must be text; got 'False'"),
    ("a: &x 1\nb: *x\n", "line 1: not valid YAML; an alias (*name) is not used here; write the value out"),
    ("a: !!python/name:os.system 1\n", "line 1: not valid YAML; could not determine a constructor for the tag 'tag:yaml.org,2002:python/name:os.system'"),
    ("a: 2026-02-30\n", "file: cannot be read; day is out of range for month"),
    ("- " * 70 + "1\n", "line 1: not valid YAML; nested more than 64 levels deep"),
])  # fmt: skip
def test_what_is_wrong_is_said_as_ever(tmp_path: Path, text: str, said: str):
    path = tmp_path / "x.yml"
    path.write_text(text)
    with pytest.raises(labdata.LabError) as error:
        files.read_yaml(path)
    assert error.value.problems == [f"{path}: {said}"]


def test_what_lies_in_brackets_is_nobody_elses():
    first, second = (quick.read("a: {b: [1, x]}\nc: [2]\nd:\n- {e: 1}\n") for _ in range(2))
    first["a"]["b"].append(2), first["c"].append(3), first["d"][0].update(e=2)
    assert second == quick.read("a: {b: [1, x]}\nc: [2]\nd:\n- {e: 1}\n") == {"a": {"b": [1, "x"]}, "c": [2], "d": [{"e": 1}]}


def test_without_the_fast_reader_all_is_read(monkeypatch: pytest.MonkeyPatch):
    path = next(p for p in sorted((ROOT / "labdata/runs").rglob("*.yml")) if plain(p.read_text()))
    fast = files.read_yaml(path)
    monkeypatch.setattr(quick, "yaml_rs", None)
    assert repr(files.read_yaml(path)) == repr(fast)


def plain(text: str) -> bool:
    try:
        quick.read(text)
    except ValueError:
        return False
    return True
