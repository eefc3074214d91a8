"""`make serve` builds many times in one process: what it keeps between builds is never older than the files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.conftest import copy_project

PAGES = ("index.md", "days/01-local-inference.md", "method.md", "architectures.md", "predict.md", "accuracy.md")
# A file of labdata/ of each kind, what is written into it instead of what, and a page that shows it.
EDITS = [
    ("machines/apple-m4-24gb.yml", "Apple M4 MacBook Pro", "Another Apple M4", "index.md"),
    ("models/qwen3-8b-q4_k_m.yml", "name: Qwen3-8B Q4_K_M", "name: Another Qwen3-8B Q4_K_M", "days/01-local-inference.md"),
    ("checks/probe-2026-11-30-124645.yml", "title: ", "title: Another ", "method.md"),
    ("gguf_files.yml", "value: 671.03", "value: 671.01", "architectures.md"),
    ("chips/nvidia.yml", "NVIDIA GeForce RTX 3060 12 GB", "NVIDIA GeForce RTX 3060 12 GB renamed", "predict.md"),
    ("corpus/fit.json", "", "", "accuracy.md"),
]
SCRIPT = """
import json, pathlib, sys
from macros import rendering
PAGES, EDITS = json.loads(sys.argv[1]), json.loads(sys.argv[2])
def site():
    return rendering.macros_of(pathlib.Path("mkdocs.yml").resolve())
def page(made, name):
    return made.render(pathlib.Path("docs", name).resolve(), name.removesuffix("index.md").replace(".md", "/"))
def worse(document):
    found = json.loads(document)
    for row in found["held_out"].values():
        row[0] *= 1.5
    return json.dumps(found)
same = []
for file, old, new, name in EDITS:
    path, before = pathlib.Path("labdata", file), page(site(), name)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(old, new) if old else worse(text), encoding="utf-8")
    if page(site(), name) == before:
        same.append(file)
last = {name: page(made, name) for made in [site()] for name in PAGES}
rates = pathlib.Path("labdata/corpus/measurements.csv")
whole = rates.read_text(encoding="utf-8")
head, row, *rest = whole.split("\\n")
rates.write_text("\\n".join([head, row.replace(row.split(",")[head.split(",").index("tok_s")], "1.5"), *rest]), encoding="utf-8")
try:
    page(site(), "accuracy.md")
    refused = ""
except Exception as error:
    refused = str(error)
rates.write_text(whole, encoding="utf-8")
again = page(site(), "accuracy.md") == last["accuracy.md"]
print(json.dumps({"same": same, "last": last, "refused": refused, "again": again}))
"""


def rendered(home: Path, pages: tuple[str, ...], edits: list) -> dict:
    done = subprocess.run([sys.executable, "-c", SCRIPT, json.dumps(pages), json.dumps(edits)], cwd=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_page_follows_every_kind_of_file_it_rests_on(tmp_path):
    home = copy_project(tmp_path)
    found = rendered(home, PAGES, EDITS)
    assert found["same"] == [], "edited, and the page stayed"
    assert "make fit" in found["refused"], "a rate was changed after the fit"
    assert found["again"]
    assert rendered(home, PAGES, [])["last"] == found["last"], "a process that began after the edits says the same"
