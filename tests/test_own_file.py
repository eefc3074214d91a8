"""A user's own file of any known architecture becomes a card that costs what the file costs."""

from __future__ import annotations

import pytest

pytest.importorskip("psutil")

from test_engine_memory import CASES, write  # noqa: E402

from bench.prepare import _grouped  # noqa: E402
from macros import predict  # noqa: E402
from macros.cards import Model, ShapeDoc  # noqa: E402
from macros.fields import Source  # noqa: E402
from macros.gguf_header import read_header  # noqa: E402


@pytest.mark.parametrize("name", CASES)
def test_the_card_of_a_header_costs_what_the_header_costs(tmp_path, name: str):
    path = tmp_path / "m.gguf"
    write(path, CASES[name])
    header = read_header(path)
    assert header.shape == CASES[name].shape
    card = Model(schema=1, id="m", name="M", quant=header.quant, weights="published", hf=None, shape=ShapeDoc.of(header.shape, "header"),
                 tensors=_grouped(header), sources={"header": Source(title="header", kind="published", note="m.gguf")})  # fmt: skip
    again = Model.model_validate_json(card.model_dump_json(by_alias=True))
    assert again.structure() == header.structure
    assert not again.approximate
    assert predict.decode_depth_ratio(again, 4096) <= 1 and predict.prefill_depth_ratio(again, 4096) <= 1
