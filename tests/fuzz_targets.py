"""What is fuzzed: one function a door that strangers' bytes come in by. Each returns, or raises only what it promises.

`tests/test_fuzz.py` runs them for seconds, `make fuzz` for as long as one likes; both start from the same seeds.
"""

from __future__ import annotations

import functools
import json
import math
import tempfile
from pathlib import Path
from typing import Any

from bench import imports, log_read, log_text, share, transcript
from bench.import_cards import ImportRefused
from bench.share import ShareRefused
from macros import files, gguf_header, labdata
from macros.labdata import LabError
from macros.schema_docs import FILES

HERE = Path(__file__).resolve().parent
MOST = 2**16  # bytes of a mutant: what breaks does so in little
# words that parsers trip over, put where others stood
JUNK = [b"-1", b"0", b"1e999", b"-nan", b"nan", b".inf", b"null", b"true", b"9" * 400, b"0x" + b"f" * 80, b"1:1:1", b"{}", b"[", b"[" * 80, b"]", b'"', b"'", b"|", b"\xff",
        b"\n", b"\r", b"\x00", b"\\ud800", b"\xe2\x80\xae", b"\xd0\x90", b"&a", b"*a", b"!!python/name:os.system", b"<<: {}", b"- ", b"? ", b": ", b"#", b"../..", b"/etc/passwd",
        b"<script>", b"[[ 1/0 ]]", b"=1+1", b"GiB", b"pp0", b"tg128 @ d9", b"\xc2\xb1", b"> ", b"**", b"\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x00\x00\x00\x10"]  # fmt: skip


@functools.cache
def lab() -> labdata.Lab:
    return labdata.load()


def log(data: bytes) -> None:
    """A log, as far as its rows: refused in one line, or every number of every row is one."""
    try:
        text = log_text.decode(data)
    except log_text.Refused as error:
        assert "\n" not in str(error)
        return
    found = log_read.read(text)
    for row in found.rows:
        numbers = [row.mean_tok_s, row.sigma_tok_s, *(row.samples_ns or [])]
        assert all(math.isfinite(n) and n > 0 for n in numbers if n is not None), row
        assert row.n_prompt + row.n_gen > 0 and (row.samples_ns or row.mean_tok_s), row


def imported(data: bytes) -> None:
    """A log, as far as its records: refused in lines that name it, or what is written reads back the same."""
    try:
        done = imports.prepare(data, "log", lab(), "apple-m4-24gb", None)
    except ImportRefused as error:
        assert all(line.startswith(("log: ", "MACHINE: ")) for line in str(error).splitlines()), error
        return
    with tempfile.TemporaryDirectory() as folder:
        for _, document in done.documents:
            path = Path(folder) / "again.yml"
            try:
                labdata.write(path, document)
            except LabError as error:  # letters of two alphabets: nothing is written
                assert "again.yml: " in str(error)
                continue
            assert labdata.parse(type(document), path, "again") == document


def header(data: bytes) -> None:
    """A GGUF's header: refused in one line with its name, or a shape whose work can be counted."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.gguf"
        path.write_bytes(data)
        try:
            found = gguf_header.read_header(path)
        except ValueError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error), error
            return
        assert found.shape.n_layer > 0 and all(min(t.shape) > 0 for t in found.tensors)


def document(data: bytes) -> None:
    """A file of labdata/, its kind by its first byte: problems with its name, or a document that is written and read back the same."""
    kinds = list(FILES.values())
    kind = kinds[data[0] % len(kinds)] if data else kinds[0]
    with tempfile.TemporaryDirectory() as folder:
        path, again = Path(folder) / "x.yml", Path(folder) / "y.yml"
        path.write_bytes(data[1:])
        try:
            found = labdata.parse(kind, path, "labdata/x.yml")
        except LabError as error:
            assert all(p.startswith("labdata/x.yml: ") and len(p) < 1100 for p in error.problems), error
            return
        labdata.write(again, found)
        assert labdata.parse(kind, again, "y") == found


def yaml(data: bytes) -> None:
    """Any text as YAML: a ValueError, or plain Python that is written and read back the same."""
    try:
        found = files.from_text(data.decode("utf-8", "replace"))
    except (ValueError, TypeError, RecursionError):
        return
    assert _same(files.from_text(files.dump(found)), found)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return a == b or (a != a and b != b)


def pasted(data: bytes) -> None:
    """What lscpu, nvidia-smi and others printed elsewhere: any text gives a host, however little it says."""
    transcript.host(data.decode("utf-8", "replace"))


def shared(data: bytes) -> None:
    """A run sent as one file: refused in lines that name it, or files that belong below labdata/."""
    try:
        found = share.read(data, "sent.json")
    except ShareRefused as error:
        assert all(line.startswith("sent.json: ") for line in str(error).splitlines()), error
        return
    assert all(".." not in place and place.split("/")[0] in ("raw", "machines", "models", "ink", "runs") for place in found)


def seeds(name: str) -> list[bytes]:
    """Files to start from: real logs, hosts and documents, and headers kept here."""
    data = HERE / "data"
    if name in ("log", "imported"):
        found = sorted((data / "logs").glob("*_*"))
    elif name == "pasted":
        found = sorted((data / "hosts").glob("*_*"))
    elif name == "shared":
        run = ["machines/apple-m4-24gb.yml", "ink/day-01.yml", "runs/apple-m4-24gb/day1-baseline.yml", "raw/day-01.yml"]
        whole = {place: (labdata.ROOT / place).read_text(encoding="utf-8")[:2000] for place in run if (labdata.ROOT / place).exists()}
        return [share.MARK + b'"files": ' + json.dumps(part).encode() + b"}" for part in ({}, {"runs/a/b.yml": "id: b"}, whole)] + [
            p.read_bytes() for p in sorted((data / "fuzz").glob("shared-*.json"))]
    elif name == "header":
        found = sorted((data / "fuzz").glob("*.bin"))
    else:
        kinds = {"machines": 0, "models": 1, "ink": 2, "runs": 5, "checks": 8}
        paths = [(k, p) for k in kinds for p in sorted(labdata.ROOT.glob(f"{k}/**/*.yml")) if "." not in p.stem.replace("0.6b", "").replace("1.7b", "")]
        return [bytes([kinds[k]]) * (name == "document") + p.read_bytes()[:MOST] for k, p in paths] + [p.read_bytes() for p in sorted((data / "fuzz").glob("*.yml"))]
    return [p.read_bytes()[:MOST] for p in found]


TARGETS = {f.__name__: f for f in (log, imported, header, document, yaml, pasted, shared)}
