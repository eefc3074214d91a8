"""What lies beside a page's tables and charts: cells as they are known, each folder made when it is needed, words of one colour written once."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from macros import chart_kit, charts, evidence, narrative

NAN = float("nan")


@pytest.fixture
def book() -> narrative.Book:
    return narrative.Book(SimpleNamespace(inks={}, runs={}), here="machines/x/")


def test_a_csv_keeps_each_cell_as_it_is_known(book):
    cells = [1, True, 1.0, NAN, None, "=1+1", "a = b", -3.5, "-3.5", float("nan")]
    assert evidence.publish(book, "rows", [{"n": i, "cell": cell} for i, cell in enumerate(cells)]) == "../../data/machines-x-rows.csv"
    # Equal numbers stay what they were; not a number is no value; a number may begin with a sign, words may not.
    said = ["1", "True", "1.0", "", "", "'=1+1", "a = b", "-3.5", "'-3.5", ""]
    assert book.files["data/machines-x-rows.csv"] == "".join(["n,cell\n", *(f"{i},{cell}\n" for i, cell in enumerate(said))])


@pytest.mark.parametrize("cells", [[1, 0.1, -0.0, NAN, None, 1e15, 0.0001], [1e-5, 2.0, None], [1e16, 1], [float("inf"), 1.0], [123e22, 10**25]])
def test_numbers_in_a_csv_are_written_as_python_does(book, cells):
    evidence.publish(book, "n", [{"i": i, "n": n} for i, n in enumerate(cells)])
    said = ["" if n is None or n != n else str(n) for n in cells]
    assert book.files["data/machines-x-n.csv"] == "".join(["i,n\n", *(f"{i},{n}\n" for i, n in enumerate(said))])


def test_a_csv_without_rows_is_its_header_or_nothing(book):
    evidence.publish(book, "none", [])
    assert book.files["data/machines-x-none.csv"] == "\n"


def test_a_table_that_shares_a_csv_writes_none(book):
    html = evidence.table(book, "t", [], [], "../../data/machines-x-all.csv", "What it holds.")
    assert 'href="../../data/machines-x-all.csv"' in html and not book.files


def test_a_folder_is_made_for_its_first_file(tmp_path, book):
    book.site = tmp_path
    for address in ("index.html", "data/a.csv", "data/b.csv", "machines/x/index.html"):
        book.publish(address, "é")
        assert (tmp_path / address).read_bytes() == b"\xc3\xa9"
    book.publish("data/a.csv", b"\x00")
    assert (tmp_path / "data/a.csv").read_bytes() == b"\x00"


def test_words_of_one_colour_are_one_layer():
    rows = [{"depth_tokens": d, "measured_tok_s": 20.0 - d / 1000, "sigma_tok_s": 0.1, "predicted_tok_s": 19.5 - d / 1100, "roof_tok_s": 24.0 - d / 1200} for d in (0, 4096)]
    spec = charts.decode_depth(rows)
    for drawing in (spec, spec["usermeta"]["narrow"]):
        colours = [layer["mark"]["color"] for layer in drawing["layer"] if layer["mark"]["type"] == "text"]
        assert len(colours) == len(set(colours)) == 3  # the unit and the roof, predicted, measured
    layers = chart_kit.labels([("muted", "a", 1, 2), ("text", "b", 3, 4), ("muted", "c", 5, 6)])
    assert [[tuple(row.values()) for row in layer["data"]["values"]] for layer in layers] == [[("a", 1, 2), ("c", 5, 6)], [("b", 3, 4)]]
    assert json.dumps(layers).count('"scale": null') == 4  # places in px, on no axis
