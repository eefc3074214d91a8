"""The committed typefaces are what the recipes say, licence beside them, and are cut to the same bytes again."""

from __future__ import annotations

from pathlib import Path

import pytest
from fontTools.ttLib import TTFont

from macros import fonts


@pytest.mark.parametrize("path", fonts.RECIPES, ids=lambda path: path.name)
def test_a_face_has_the_characters_and_axes_of_its_recipe(path: Path):
    face, font = fonts.RECIPES[path], TTFont(path)
    drawn = {ord(c) for c in face.characters} & set(TTFont(fonts.package_dir(face.source[0]) / "files" / face.source[1], lazy=True).getBestCmap())
    assert set(font.getBestCmap()) == drawn
    # Where a face has no hyphen that does not break, shapers take its other one.
    assert {ord(c) for c in fonts.TEXT} - set(font.getBestCmap()) <= {0x2011} and 0x2010 in font.getBestCmap()
    limits = {axis.axisTag: (axis.minValue, axis.maxValue) for axis in font["fvar"].axes} if "fvar" in font else {}
    assert limits == {tag: limit for tag, limit in face.axes.items() if isinstance(limit, tuple)}
    assert (font.flavor, font["name"].getDebugName(1)) == ((None, face.family) if face.family else ("woff2", font["name"].getDebugName(1)))
    assert "Open Font License" in font["name"].getDebugName(13)


def test_every_face_lies_beside_its_licence_and_is_light():
    for path, face in fonts.RECIPES.items():
        licence = fonts.package_dir(face.source[0]) / "LICENSE"
        assert licence.read_bytes() in [found.read_bytes() for found in path.parent.glob("*-LICENSE.txt")]
        assert "SIL OPEN FONT LICENSE Version 1.1" in licence.read_text(encoding="utf-8")
    web = [path for path in fonts.RECIPES if path.suffix == ".woff2"]
    assert sorted(web) == sorted(fonts.FOLDER.glob("*.woff2"))
    assert sum(path.stat().st_size for path in web) <= 50_000  # of the 120 KB of a first visit


@pytest.mark.parametrize("name", ["source-serif-4-italic.woff2", "inter.woff2", "bold.ttf"])  # the others take ten times as long
def test_cutting_again_gives_the_same_bytes(name: str, tmp_path: Path):
    path = next(path for path in fonts.RECIPES if path.name == name)
    fonts.cut(fonts.RECIPES[path], tmp_path / name)
    assert (tmp_path / name).read_bytes() == path.read_bytes(), "make fonts"
