"""The site's typefaces, cut down once to the characters the site prints: `make fonts` writes the files that are committed.

Source Serif 4 and Inter come whole (4 MB) from their PyPI packages; readers get some 50 KB of woff2, and a character
that is left out shows in a face of the reader's own. Both are under the SIL Open Font Licence 1.1, which allows
subsetting and asks that the licence travel with the files. A build only copies them: cutting takes as long as ten pages.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).parent / "theme" / "assets" / "fonts"  # published as they are, licences beside them
PICTURE_FACES = Path(__file__).parent / "faces"  # of the pictures' renderer, not published

# What a report is written in: English, the accents of names in citations,
# spaces that do not break, dashes, quotes and the signs between numbers.
TEXT = "".join(map(chr, range(0x20, 0x7F))) + "\u00a0\u2009\u202f\u2010\u2011–—‘’“”…" + "§°·×−±≤≥≈→µσηπ²³"
NAMES = "ÄÅÉÖØÜßàáâãäåæçèéêëìíîïñòóôõöøùúûüýćčłńőřšžŽ"
# Inter sets the signs the reading face lacks ("Signs" in inklab.css), so rarer ones live only there.
SIGNS = "©«»¼½¾†•≠÷∞√←↑↓●○■¦αβγλμρτΔΣ⁰¹⁴⁵⁶⁷⁸⁹⁺⁻"


@dataclass(frozen=True)
class Face:
    """How one file is cut.

    Args:
        source: (package, file in it)
        axes: pinned, or limited to a range
        features: OpenType's, kept
        family: of a face for pictures, a regular font of that name; "": woff2 for the web
    """

    source: tuple[str, str]
    axes: dict
    features: tuple[str, ...]
    characters: str
    family: str = ""


SERIF, ITALIC = (("fontpkg_source_serif_4", f"SourceSerif4{slant}[opsz,wght].ttf") for slant in ("", "-Italic"))
SANS = ("fontpkg_inter", "Inter[opsz,wght].ttf")
# The slanted face sets single words, Inter small text and figures: both do without kerning, 7 KB of it.
# Optical size is pinned (14: text at 13-18 px) because a second axis doubles a file.
# The pictures' renderer takes one weight from a variable font, its lightest or regular one: they have faces of their own.
RECIPES = {
    FOLDER / "source-serif-4.woff2": Face(SERIF, {"opsz": 18, "wght": (400, 600)}, ("kern", "liga"), TEXT + NAMES),
    FOLDER / "source-serif-4-italic.woff2": Face(ITALIC, {"opsz": 18, "wght": 400}, (), TEXT),
    FOLDER / "inter.woff2": Face(SANS, {"opsz": 14, "wght": (400, 700)}, ("tnum",), TEXT + SIGNS),
    PICTURE_FACES / "title.ttf": Face(SERIF, {"opsz": 30, "wght": 600}, ("kern",), TEXT + NAMES, "Inklab Title"),
    PICTURE_FACES / "bold.ttf": Face(SANS, {"opsz": 24, "wght": 650}, (), TEXT + NAMES + SIGNS, "Inklab Bold"),
}
UNITS = 1000  # to an em: Inter is drawn on 2048, whose last digits are 2 KB and not to be seen


def package_dir(package: str) -> Path:
    """Directory of an installed font package.

    Raises: FileNotFoundError naming the package to install.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            f"fonts: {package} is not installed; try pip install {package.replace('_', '-')}"
        )
    return Path(spec.origin).parent


def cut(face: Face, target: Path) -> None:
    """Write a face with its characters only; the same packages give the same bytes."""
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont
    from fontTools.ttLib.scaleUpem import scale_upem
    from fontTools.varLib.instancer import instantiateVariableFont

    package, name = face.source
    font = TTFont(package_dir(package) / "files" / name, recalcTimestamp=False)
    options = Options()
    options.layout_features = list(face.features)
    options.hinting = False
    options.name_IDs = [1, 2, 13, 14, *([6] if face.family else [])]  # family, style, licence and its address; a face without its PostScript name is not read
    if "kern" not in face.features and "GPOS" in font:
        del font["GPOS"]  # unread: its pairs are most of the work
    subsetter = Subsetter(options)
    subsetter.populate(text=face.characters)
    subsetter.subset(font)  # before the axes: fewer glyphs to instantiate
    font = instantiateVariableFont(font, face.axes)
    if font["head"].unitsPerEm > UNITS:
        scale_upem(font, UNITS)
    if face.family:
        font["OS/2"].usWeightClass = 400  # found by its family alone
        for record in font["name"].names:
            record.string = {1: face.family, 2: "Regular", 6: face.family.replace(" ", "-")}.get(record.nameID, record.string)
    else:
        font.flavor = "woff2"
    target.parent.mkdir(parents=True, exist_ok=True)
    font.save(target)


def write_licence(package: str, folder: Path) -> Path:
    """The licence of a package's typeface, beside the files cut from it."""
    target = folder / f"{package.removeprefix('fontpkg_').replace('_', '-')}-LICENSE.txt"
    return Path(shutil.copyfile(package_dir(package) / "LICENSE", target))


def main() -> None:
    """Write every file anew."""
    for target, face in RECIPES.items():
        cut(face, target)
        write_licence(face.source[0], target.parent)
        print(f"{target.name}: {target.stat().st_size:,} B")


if __name__ == "__main__":
    main()
