"""The site's two typefaces, cut down to the characters the site prints.

Source Serif 4 and Inter come whole (4 MB) from their PyPI packages; readers
get about 60 KB of woff2. Both are under the SIL Open Font Licence 1.1, which
allows subsetting and asks that the licence travel with the files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

CACHE = Path(".cache/fonts")

# What a report is written in: English, the accents of names in citations,
# spaces that do not break, dashes, quotes and the signs between numbers.
TEXT = "".join(map(chr, range(0x20, 0x7F))) + "\u00a0\u2009\u202f\u2011–—‘’“”…" + "§°·×−±≤≥≈→µσηπ²³"
NAMES = "ÄÅÉÖØÜßàáâãäåæçèéêëìíîïñòóôõöøùúûüýćčłńőřšžŽ"
# Inter sets the signs the reading face lacks ("Signs" in inklab.css), so rarer ones live only there.
SIGNS = "©«»¼½¾†•≠÷∞√←↑↓●○■¦αβγλμρτΔΣ⁰¹⁴⁵⁶⁷⁸⁹⁺⁻"

# file written: (package, source file, axes pinned or limited, OpenType features, characters)
# The slanted face sets single words, Inter small text and figures: both do without kerning, 7 KB of it.
# Optical size is pinned (14: text at 13-18 px) because a second axis doubles a file.
RECIPES = {
    "source-serif-4.woff2": (
        "fontpkg_source_serif_4", "SourceSerif4[opsz,wght].ttf",
        {"opsz": 18, "wght": (400, 600)}, ["kern", "liga"], TEXT + NAMES,
    ),
    "source-serif-4-italic.woff2": (
        "fontpkg_source_serif_4", "SourceSerif4-Italic[opsz,wght].ttf",
        {"opsz": 18, "wght": 400}, [], TEXT,
    ),
    "inter.woff2": (
        "fontpkg_inter", "Inter[opsz,wght].ttf",
        {"opsz": 14, "wght": (400, 700)}, ["tnum"], TEXT + SIGNS,
    ),
}  # fmt: skip


# Faces of pictures: their renderer takes one weight from a variable font, its lightest or regular one.
# family: (package, source file, axes)
PICTURE_FACES = {
    "Inklab Title": ("fontpkg_source_serif_4", "SourceSerif4[opsz,wght].ttf", {"opsz": 30, "wght": 600}),
    "Inklab Bold": ("fontpkg_inter", "Inter[opsz,wght].ttf", {"opsz": 24, "wght": 650}),
}


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


def build_fonts(out_dir: Path, cache_dir: Path = CACHE) -> list[Path]:
    """Write the subset woff2 files and their licences into out_dir; the paths written.

    The first call takes seconds, later ones copy from cache_dir, whose names
    carry a hash of everything that shapes a file: source, recipe and this code.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    cache_dir.mkdir(parents=True, exist_ok=True)
    written = []
    for name, (package, file_name, axes, features, characters) in RECIPES.items():
        source = package_dir(package) / "files" / file_name
        recipe = repr((axes, features, characters)).encode() + Path(__file__).read_bytes()
        key = hashlib.sha256(source.read_bytes() + recipe).hexdigest()[:16]
        cached = cache_dir / f"{key}-{name}"
        if not cached.exists():
            _subset(source, cached, axes, features, characters)
        written.append(Path(shutil.copyfile(cached, out_dir / name)))
    for package in sorted({recipe[0] for recipe in RECIPES.values()}):
        licence = out_dir / f"{package.removeprefix('fontpkg_').replace('_', '-')}-LICENSE.txt"
        written.append(Path(shutil.copyfile(package_dir(package) / "LICENSE", licence)))
    return written


def build_picture_faces(cache_dir: Path = CACHE / "pictures") -> Path:
    """A directory with the faces of pictures, made once."""
    cache_dir.mkdir(parents=True, exist_ok=True)
    for family, (package, file_name, axes) in PICTURE_FACES.items():
        source = package_dir(package) / "files" / file_name
        key = hashlib.sha256(source.read_bytes() + repr((family, axes)).encode() + Path(__file__).read_bytes()).hexdigest()[:16]
        path = cache_dir / f"{key}.ttf"
        if not path.exists():
            _subset(source, path, axes, ["kern"], TEXT + NAMES + SIGNS, family)
    return cache_dir


def _subset(source: Path, target: Path, axes: dict, features: list[str], characters: str, family: str = "") -> None:
    """A face with some characters only; given a family, as a regular font of that name and not for the web."""
    # Imported here: fontTools costs more than the whole of a cached build.
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont
    from fontTools.varLib.instancer import instantiateVariableFont

    font = TTFont(source, recalcTimestamp=False)
    options = Options()
    options.layout_features = features
    options.hinting = False
    options.name_IDs = [1, 2, 13, 14]  # family, style, licence and its address
    if family:
        options.name_IDs.append(6)  # a face without its PostScript name is not read
    subsetter = Subsetter(options)
    subsetter.populate(text=characters)
    subsetter.subset(font)  # before the axes: fewer glyphs to instantiate
    font = instantiateVariableFont(font, axes)
    if family:
        font["OS/2"].usWeightClass = 400  # found by its family alone
        for record in font["name"].names:
            record.string = {1: family, 2: "Regular", 6: family.replace(" ", "-")}.get(record.nameID, record.string)
    else:
        font.flavor = "woff2"
    # A half-written file must never carry a final name: two builds may run at once.
    draft = target.with_suffix(f".{os.getpid()}")
    font.save(draft)
    draft.replace(target)
