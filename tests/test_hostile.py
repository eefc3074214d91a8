"""Files from people nobody knows: nothing of them runs, nothing else is read, and the message names file and key."""

from __future__ import annotations

import os
import re
import shutil
import struct
import time
from pathlib import Path

import pytest
from conftest import reseal, run_module

from macros import evidence, guard, labdata
from macros.labdata import LabError

MACHINE, MODEL, INK = "machines/apple-m4-24gb.yml", "models/qwen3-8b-q4_k_m.yml", "ink/day-01.yml"
RUN = "runs/apple-m4-24gb/day1-baseline.yml"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """One machine's part of the lab: the table of chips would be read anew for every case."""
    root = tmp_path / "labdata"
    for part in ("ink", "machines", "models", "raw", "runs"):
        shutil.copytree(labdata.ROOT / part, root / part, ignore=shutil.ignore_patterns("amd-epyc*"))
    return root


def said(root: Path) -> list[str]:
    """What the loader says, which takes no longer than reading a lab may."""
    begun = time.process_time()
    with pytest.raises(LabError) as caught:
        labdata.load(root)
    assert time.process_time() - begun < 20  # a guard against what grows without bound, far above what it takes
    assert all(line.startswith("labdata/") and "\n" not in line and len(line) < 1100 for line in caught.value.problems)
    return caught.value.problems


def put(root: Path, file: str, old: str, new: str) -> None:
    path = root / file
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{file} no longer holds {old!r}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


BOMB = "b0: &b0 [x, x]\n" + "".join(f"b{i}: &b{i} [*b{i - 1}, *b{i - 1}]\n" for i in range(1, 40))
NAME = "name: Apple M4 MacBook Pro, 24 GB"


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        # YAML that is more than data
        (MACHINE, "os: macOS", "os: !!python/object/apply:os.system ['touch hacked']", "line 6: not valid YAML; could not determine a constructor for the tag 'tag:yaml.org,2002:python/object/apply:os.system'"),
        (MACHINE, "os: macOS", "os: !evil macOS", "line 6: not valid YAML; could not determine a constructor for the tag '!evil'"),
        (MACHINE, "os: macOS", "os: !!binary aGVsbG8=", "os: Input should be a valid string"),
        (MACHINE, "os: macOS\ncores: null", "os: &a macOS\ncores: *a", "line 6: not valid YAML; an alias (*name) is not used here; write the value out"),
        (MACHINE, "os: macOS", f"os: macOS\n{BOMB}", "not valid YAML; an alias (*name) is not used here"),
        (MACHINE, "os: macOS", "os: &a [*a]", "not valid YAML; an alias (*name) is not used here"),
        (MACHINE, "os: macOS", "os: macOS\n<<: {chip: x}", "could not determine a constructor for the tag 'tag:yaml.org,2002:merge'"),
        (MACHINE, "os: macOS", "os: " + "[" * 100_000, "line 6: not valid YAML; exceeded maximum nesting depth"),
        (MACHINE, "os: macOS", "os: " + "[" * 70 + "]" * 70, "line 6: not valid YAML; nested more than 64 levels deep"),
        (MACHINE, "os: macOS", "os:\n" + "- " * 100_000, "line 7: not valid YAML; nested more than 64 levels deep"),
        (MACHINE, "os: macOS", "os:\n" + "? " * 100_000, "not valid YAML; nested more than 64 levels deep"),
        (MACHINE, "os: macOS", "os: macOS\n1: 2", "line 7: not valid YAML; a key must be text; got '1'"),
        # numbers
        (MACHINE, "value: 120", "value: 1.0e+300", "specs.memory_bandwidth.value: Input should be less than or equal to 1000000000000000000; got 1e+300"),
        (MACHINE, "value: 120", "value: 1.0e-300", "specs.memory_bandwidth.value: Input should be greater than or equal to 0.000000000000000001; got 1e-300"),
        (MACHINE, "value: 120", "value: .inf", "specs.memory_bandwidth.value: Input should be a finite number; got inf"),
        (MACHINE, "value: 120", "value: 0x" + "f" * 60, "specs.memory_bandwidth.value: Input should be"),
        (MACHINE, "value: 120", "value: 0x" + "f" * 100_000, "a number of 100002 characters; at most 64"),
        (MACHINE, "value: 120", "value: 1" + ":1" * 100_000, "a number of 200001 characters; at most 64"),
        (MACHINE, "cores: null", "cores: 99999999999999999999999", "cores: Input should be less than or equal to 1000000000000000000"),
        (MODEL, "n_vocab: 151936", "n_vocab: 9223372036854775807", "shape.n_vocab: Input should be less than or equal to 1000000000000000000"),
        (RUN, "mean_tok_s: 228.94", "mean_tok_s: .nan", "results.0.published.mean_tok_s: Input should be a finite number; got nan"),
        (RUN, "n: 5", "n: 1.0e+300", "results.0.published.n: Input should be a valid integer"),
        # texts
        (MACHINE, NAME, "name: " + "x" * 2**20, "name: String should have at most 200 characters"),
        (MACHINE, "os: macOS", "os: " + "x" * 2**20, "os: String should have at most 4000 characters"),
        (MACHINE, NAME, "name: '   '", "name: a name is blank"),
        (MACHINE, NAME, "name: Apple M4 \u202e24", "line 4: a character nobody sees, or that turns the text around; got U+202E; delete it"),
        (MACHINE, NAME, "name: Apple\u200b M4", "line 4: a character nobody sees, or that turns the text around; got U+200B; delete it"),
        (MACHINE, NAME, '# a comment \u2066\nname: Apple M4', "line 4: a character nobody sees, or that turns the text around; got U+2066; delete it"),
        (MACHINE, NAME, 'name: "Apple \\u202eM4"', "line 4: not valid YAML; a character nobody sees, or that turns the text around; got U+202E"),
        (MACHINE, NAME, 'name: "Apple \\x1b[31m"', "line 4: not valid YAML; a character nobody sees, or that turns the text around; got U+001B"),
        (MACHINE, NAME, 'name: "Apple \\ud800"', "line 4: not valid YAML;"),
        (MACHINE, NAME, "name: \u0410pple M4", "line 4: not valid YAML; letters of two alphabets that look alike in one word; got 'Аpple', U+0410; write it in one alphabet"),
        (MACHINE, NAME, "name: \u0420\u0421 M4", "name: a word of another alphabet that looks Latin; got U+0420 for 'P'; write it in Latin letters"),
        (MACHINE, NAME, "name: \uff21pple M4", "line 4: not valid YAML; a letter of a full-width or mathematical alphabet; got U+FF21; write plain letters"),
        # places and addresses
        (MACHINE, "raw: day-01.yml", "raw: ../machines/apple-m4-24gb.yml", "sources.lab.raw: String should match pattern"),
        (MACHINE, "raw: day-01.yml", "raw: ..", "sources.lab.raw: no such file in labdata/raw; got '..'"),
        (MACHINE, "raw: day-01.yml", "raw: /etc/passwd", "sources.lab.raw: String should match pattern"),
        (MACHINE, "id: apple-m4-24gb", "id: ../../docs/index", "id: String should match pattern"),
        (RUN, "id: day-01", "id: ../models/qwen3-8b-q4_k_m", "ink.id: String should match pattern"),
        (RUN, "model: qwen3-8b-q4_k_m", "model: /etc/passwd", "results.0.model: String should match pattern"),
        (MACHINE, "url: https://", "url: 'javascript:alert(1)//", "sources.apple.url: String should match pattern"),
        (MACHINE, "schema: 1", "schema: 2", "schema: from a later Inklab than this one; got 2; known: 1 to 1; git pull brings a newer one"),
    ],
)  # fmt: skip
def test_what_a_stranger_may_not_write(lab: Path, file: str, old: str, new: str, expected: str):
    if "javascript" in new:
        line = next(s for s in (lab / file).read_text(encoding="utf-8").splitlines() if "url: https://" in s)
        put(lab, file, line, re.sub(r"https://[^\s,}]+", "'javascript:alert(1)'", line))
    else:
        put(lab, file, old, new)
    found = said(lab)
    assert any(p.startswith(f"labdata/{file}: {expected}") or (p.startswith(f"labdata/{file}: ") and expected in p) for p in found), found
    assert not Path("hacked").exists()


def test_thousands_of_wrong_keys_are_counted_and_not_all_said(lab: Path):
    put(lab, MACHINE, "os: macOS", "os: macOS\n" + "".join(f"key{i}: 1\n" for i in range(100_000)))
    found = said(lab)
    assert len(found) < 60 and any("99950 more problems of the kind" in p for p in found)


def test_keys_chosen_to_collide_take_no_longer_than_others(lab: Path):
    # hash(n) is n modulo 2**61 - 1: all of these are equal
    put(lab, MACHINE, "os: macOS", "os: macOS\n" + "".join(f"{i * (2**61 - 1)}: 1\n" for i in range(200_000)))
    assert any("a key must be text; got '0'" in p for p in said(lab))


@pytest.mark.parametrize("file", ["machines/big.yml", "raw/big.txt", RUN])
def test_a_file_of_1_gb_is_refused_unread(lab: Path, file: str):
    with open(lab / file, "ab") as out:
        out.truncate(10**9)
    assert any(p.startswith(f"labdata/{file}: file: too large, so it is not read; got 1,000,000,000 bytes; at most ") for p in said(lab))


@pytest.mark.parametrize(
    ("place", "target"),
    [("machines/evil.yml", "/etc/passwd"), ("raw/evil.txt", "/etc/passwd"), ("runs/evil", "/etc"), ("ink/evil.yml", "day-01.yml"), (RUN, "../../ink/day-01.yml")],
)
def test_a_symbolic_link_is_never_followed(lab: Path, place: str, target: str):
    (lab / place).unlink(missing_ok=True)
    (lab / place).symlink_to(target)
    found = said(lab)
    assert f"labdata/{place}: file: a symbolic link; got one to {target!r}; put the file itself there" in found
    assert not any("root:" in p for p in found)


def test_a_pipe_is_never_waited_for(lab: Path):
    os.mkfifo(lab / "models/evil.yml")
    assert "labdata/models/evil.yml: file: neither a file nor a folder; got a device, a pipe or a socket" in said(lab)


def test_git_does_not_read_through_a_link_either(lab: Path, tmp_path: Path):
    from macros import history

    secret = tmp_path / "secret"
    secret.write_bytes((lab / "raw/day-01.yml").read_bytes())
    assert guard.inside(lab, lab / "raw/day-01.yml")
    (lab / "raw/day-01.yml").unlink()
    (lab / "raw/day-01.yml").symlink_to(secret)
    assert not guard.inside(lab, lab / "raw/day-01.yml")
    assert history.problems(lab) == []  # no repository here


def test_what_could_not_be_read_back_is_not_written(tmp_path: Path):
    machine = labdata.load().machines["apple-m4-24gb"]
    path = tmp_path / "m.yml"
    with pytest.raises(LabError, match=r"m\.yml: notes\.0: a character nobody sees, or that turns the text around; got U\+202E; delete it"):
        labdata.write(path, machine.model_copy(update={"notes": ["a\u202eb"]}))
    assert not path.exists()


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "＝1"])
def test_no_cell_of_words_is_a_formula(cell: str):
    from macros.narrative import Book

    book = Book(labdata.Lab())
    evidence.publish(book, "t", [{"words": cell, "number": -1.5}])
    (text,) = book.files.values()
    assert text.splitlines()[1].lstrip('"').startswith(f"'{cell}") and text.splitlines()[1].endswith(",-1.5")


EVIL = "a</title><script>alert(1)</script><svg onload=alert(2)> \"q' [[ 1/0 ]] [% raise %] {{ 1/0 }} [b](javascript:c) ![d](http://e.f/g.png) **h** =1+1 <!-- "
FREE = {"name", "os", "title", "note", "notes", "kernel", "cpu", "board", "power", "gpus", "command", "engine", "engine_version", "version", "backend", "setting", "a", "b"}


def evil(value, key: str = ""):
    """A document's content with every text that is free exchanged."""
    if isinstance(value, dict):
        return {k: evil(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [evil(v, key) for v in value]
    return EVIL if isinstance(value, str) and key in FREE else value


def test_a_lab_of_evil_words_and_extreme_numbers_builds_and_nothing_of_it_runs(project: Path):
    """Every text that is free is markup, script, macro and formula; two roofs are the smallest and the largest there are."""
    lab = labdata.load(project / "labdata")
    runs = {f"runs/{name}": run for name, run in lab.runs.items()}
    for name, found in {**{f"machines/{n}": m for n, m in lab.machines.items()}, **{f"models/{n}": m for n, m in lab.models.items()},
                        **{f"checks/{n}": c for n, c in lab.checks.items()}, **runs}.items():  # fmt: skip
        path = project / f"labdata/{name}.yml"
        content = evil(found.model_dump(by_alias=True, exclude_unset=True))
        if name.startswith("machines/amd"):
            content["chip"] = EVIL  # the M4's is looked up by the accuracy page
        labdata.write(path, type(found).model_validate(content))
        if name in runs:
            reseal(path)
    put(project / "labdata", MACHINE, "value: 120.0", "value: 1.0e-18")
    put(project / "labdata", "machines/amd-epyc-2-cores-24-gb.yml", "value: 31.93", "value: 1.0e+18")  # GB/s
    done = run_module(project, "mkdocs", "build", "-q")
    assert done.returncode == 0, done.stderr
    for path in (project / "site").rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        assert not re.search(r"<script>alert|<svg onload|<strong>h<|ZeroDivision|\bnan\b|>inf\b", html), path
        assert not re.search(r"""(href|src)=["']?(javascript:c|http://e\.f)""", html), path
    assert "[[ 1/0 ]]" in (project / "site/machines/apple-m4-24gb/index.html").read_text(encoding="utf-8").replace("&#91;", "[").replace("&#93;", "]")
    for path in (project / "site/data").glob("*.csv"):
        assert not re.search(r'(?m)(^|,)"?[=@]', path.read_text(encoding="utf-8")), path


def test_a_header_that_cannot_be_a_card_is_one_line(project: Path, tmp_path: Path):
    from bench import weights
    from macros.work import Shape

    path = tmp_path / "evil.gguf"
    weights.write(path, Shape("qwen3", 2, 256, 512, 1024, 4, 2, 64, tied=True), "Q4_K_M")
    data = path.read_bytes()
    name = b"Synthetic qwen3 2x256 Q4_K_M, random weights"
    assert data.count(name) == 1
    path.write_bytes(data.replace(name, "<b>\u202e\u0410pple</b>".encode().ljust(len(name), b"\x07")))
    done = run_module(project, "bench", "run", env={"MODEL": str(path), "PROFILE": "quick", "REPS": "1", "XDG_CACHE_HOME": str(tmp_path), "DEPTHS": "8"})
    assert done.returncode == 0, done.stderr
    card = labdata.load(project / "labdata").models["evil"]
    assert card.name == "evil, synthetic weights"  # its own name is no name


def test_a_tensors_name_of_a_megabyte_is_refused(tmp_path: Path):
    from macros.gguf_header import read_header

    name = b"x" * 2**20
    table = struct.pack("<Q", len(name)) + name + struct.pack("<IqIQ", 1, 32, 0, 0)
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + table + bytes(4096))
    with pytest.raises(ValueError, match=r"m\.gguf: damaged: tensor 'x+'…: a name of 1048576 characters; llama.cpp takes 63"):
        read_header(path)
