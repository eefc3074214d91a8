"""What keeps a prediction and its pages cheap: nothing is read or worked out twice, and nothing is taken on trust for it."""

from __future__ import annotations

import os
import shutil

import pytest

from macros import chip_names, labdata, work
from macros.hardware import Chips
from macros.recipes import BASE, counted, recipe


def test_alike_tensors_counted_together_come_to_the_same():
    """Sums, roles and errors of every model known here, in a mix of each kind."""
    lab = labdata.load()
    shapes = {f.shape.dims: f.imatrix for f in lab.gguf_files.files} | {m.dims: False for m in lab.models.values() if m.shape}
    compared = fewer = 0
    for i, (shape, imatrix) in enumerate(sorted(shapes.items(), key=repr)):
        for mix in ("Q4_K_M", sorted(BASE)[i % len(BASE)]):  # all mixes in turn
            try:
                whole = recipe(shape, mix, imatrix)
            except ValueError as error:
                with pytest.raises(ValueError) as again:
                    counted(shape, mix, imatrix)
                assert str(again.value) == str(error)
                continue
            few = counted(shape, mix, imatrix)
            assert (work.total_bytes(few), work.total_params(few), sum(t.count for t in few)) == (work.total_bytes(whole), work.total_params(whole), len(whole))
            assert set(work.structure(shape, few).weights) == set(work.structure(shape, whole).weights)
            compared, fewer = compared + 1, fewer + (len(few) < len(whole) / 4)
    assert compared > 70 and fewer > 0.8 * compared


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A copy of labdata of its own."""
    shutil.copytree(labdata.ROOT, tmp_path / "labdata")
    monkeypatch.setattr(labdata, "ROOT", tmp_path / "labdata")
    chip_names.forget()
    yield tmp_path / "labdata"
    chip_names.forget()


def test_the_hardware_table_is_not_read_again_after_the_load(root, monkeypatch):
    before = chip_names.table()
    chip_names.table.cache_clear()
    labdata.load(root)
    monkeypatch.setattr(labdata, "parse", lambda *_: pytest.fail("a chip's file was read as YAML again"))
    assert chip_names.table() == before and len(before) > 100


def test_a_changed_chip_is_never_taken_from_the_snapshot(root):
    labdata.load(root)
    path = root / "chips" / "nvidia.yml"
    text = path.read_text(encoding="utf-8")
    assert labdata.document(Chips, path).chips[0].notes is not None
    path.write_text(text.replace("bits: 384, gbit_s: 19.5", "bits: 384, gbit_s: 9.5"), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != text
    with pytest.raises(labdata.LabError, match=r"labdata/chips/nvidia.yml: .*memory_bandwidth: 384 bit x 9.5"):
        labdata.document(Chips, path)


@pytest.mark.parametrize("hostile, why", [("pipe", "neither a file nor a folder"), ("huge", "too large"), ("alias", "an alias"), ("gone", "cannot be read")])
def test_a_hostile_chips_file_is_refused_by_name(root, hostile, why):
    path = root / "chips" / "amd.yml"
    path.unlink()
    if hostile == "pipe":
        os.mkfifo(path)
    elif hostile == "huge":
        with path.open("wb") as file:
            file.truncate(2**30)
    elif hostile == "alias":
        path.write_text("a: &a [x]\nb: *a\n", encoding="utf-8")
    with pytest.raises(labdata.LabError, match=f"labdata/chips/amd.yml: .*{why}"):
        labdata.document(Chips, path)
