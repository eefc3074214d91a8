"""The arrows point one way; who knows MkDocs, Altair, YAML, processes and the engine is fixed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted([*ROOT.glob("macros/*.py"), *ROOT.glob("bench/*.py")])

# Lowest first; a module imports only from layers before its own (or its own, where listed together).
LAYERS = [
    {"units", "traced", "roofline", "ggml_types", "noise", "typed", "calibrated", "devices", "uncertainty", "guard", "versions", "processes", "javascript", "javascript_code"},
    {"shapes"},
    {"layouts"},
    {"recipes"},
    {"structure"},
    {"work"},
    {"memory", "batching"},
    {"fields", "gguf_bytes", "gguf_shape"},
    {"gguf_header"},
    {"corpus_models"},
    {"seals"},
    {"cards", "hardware", "inks", "plans"},
    {"records", "seen"},
    {"costs", "latency", "trials"},
    {"quick"},
    {"files"},
    {"parsing", "proof", "references", "snapshot"},
    {"labdata"},
    {"chip_names"},
    {"corpus"},
    {"calibration"},
    {"spread"},
    {"fit", "subject_load", "diagnose"},
    {"predict_cli"},
    {"history", "schema_docs", "predict", "yours", "compare", "architectures"},
    {"anchors"},
    {"notes", "asides"},
    {"places", "built", "web"},
    {"values", "rows", "figure_rows", "mathml", "fonts", "chart_layout", "chart_svg", "chart_kit", "chart_words", "chart_draw", "chart_depth", "chart_rows",
     "chart_log", "chart_spread", "chart_growth", "charts", "chart_cache", "pictures", "tables"},
    {"reckoned"},
    {"flat", "table_texts"},
    {"export"},
    {"subjects", "inked", "side_by_side", "rules"},
    {"accuracy"},
    {"narrative"},
    {"evidence"},
    {"exhibits", "plain", "surprises", "glossary", "summary", "headlines"},
    {"downloads", "feeds", "twins"},
    {"prose"},
    {"truth"},
    {"posts"},
    {"file_tables", "accuracy_exhibits", "cost_exhibits", "figures", "paging", "page_script", "yours_page", "compare_page"},
    {"pages", "outputs", "front"},
    {"again", "ahead"},
    {"apart"},
    {"hooks", "__init__", "rendering"},
]
ONLY = {  # package -> modules that may import it
    "mkdocs": {"macros/__init__", "macros/apart", "macros/hooks", "macros/rendering"},
    "altair": set(),  # the tests hold what is drawn against its schema; to build specs with it takes too long
    "vl_convert": {"macros/charts"},
    "yaml": {"macros/files"},
    "yaml_rs": {"macros/quick"},
    "llama_cpp": {"bench/llama", "bench/llama_text"},
    "ansible_runner": {"bench/fleet"},
    "scipy": {"macros/fit"},
    "sklearn": {"macros/spread"},
    "subprocess": {"bench/build", "bench/engine", "bench/host", "bench/probe", "bench/progress", "bench/publish", "bench/successor", "bench/llama_bench",
                   "bench/overhead", "macros/history"},
}


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def imports(path: Path) -> set[str]:
    """Every module a file imports, dotted, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize("path", FILES, ids=name)
def test_arrows_point_one_way(path: Path):
    level = {module: i for i, layer in enumerate(LAYERS) for module in layer}
    used = {i.split(".")[1] for i in imports(path) if i.startswith("macros.")} & set(level)
    if path.parent.name == "bench":
        return
    assert not any(i.split(".")[0] == "bench" for i in imports(path)), "macros never uses bench"
    assert path.stem in level, f"{path.stem} has no layer in this test"
    assert all(level[u] <= level[path.stem] for u in used), f"{path.stem} reaches up to {used}"


@pytest.mark.parametrize("path", FILES, ids=name)
def test_who_knows_what(path: Path):
    for package, allowed in ONLY.items():
        if any(i.split(".")[0] == package for i in imports(path)):
            assert name(path) in allowed, f"{name(path)} imports {package}"


@pytest.mark.parametrize("module", sorted(set.union(*LAYERS[:7], {"gguf_bytes", "gguf_shape", "gguf_header", "corpus_models"})))
def test_physics_is_standard_library(module: str):
    allowed = set(sys.stdlib_module_names) | {"macros"}
    assert {i.split(".")[0] for i in imports(ROOT / "macros" / f"{module}.py")} <= allowed


@pytest.mark.parametrize("path", FILES, ids=name)
def test_no_module_outgrows_a_reading(path: Path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 350, f"{name(path)} has {lines} lines: what can be deleted or split?"


def test_physics_and_data_load_without_the_views():
    code = "import sys, macros.roofline, macros.predict, macros.labdata; print(sorted({'altair', 'pandas', 'mkdocs', 'llama_cpp'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
