"""`make day`: a day from nothing: page, post and plan, in the author's order; the ink is opened by `bench.ink`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from string import Template

from bench import plan
from bench.desk import DeskError
from bench.prepare import slug
from macros import labdata

TEMPLATES = Path(__file__).parent / "templates"


def scaffold(env: Mapping[str, str]) -> list[Path]:
    """Write a day's page, post and plan, and name both pages in mkdocs.yml; nothing is overwritten.

    Args:
        env: N, TITLE and QUESTION

    Raises:
        DeskError: every setting that is missing or wrong, or a file that is there already; nothing is written then.
    """
    home = labdata.ROOT.parent
    number, title, question = (" ".join(env.get(name, "").split()) for name in ("N", "TITLE", "QUESTION"))
    problems = []
    if not re.fullmatch(r"[1-9]\d{0,2}", number):
        problems.append(f"N: not the number of a day, 1 to 999; got {number!r}")
    problems += [f"{name}: is needed; got nothing; make day N=2 TITLE=\"…\" QUESTION=\"…\"" for name, v in (("TITLE", title), ("QUESTION", question)) if not v]
    if problems:
        raise DeskError("\n".join(problems))
    n, profile, ink = int(number), f"day{number}", f"day-{int(number):02}"
    page, post = f"{n:02}-{slug(title)}.md", f"{n:02}-post.md"
    days = home / "docs" / "days"
    there = [*sorted(days.glob(f"{n:02}-*.md")), *(p for p in (plan.PLANS / f"{profile}.yml", *labdata.ROOT.glob(f"ink/{ink}.*yml")) if p.exists())]
    if there:
        raise DeskError("\n".join(f"{p.relative_to(home)}: file: Day {n} has it already, and nothing is overwritten; got N={n}" for p in there))
    words = {"number": n, "title": json.dumps(title, ensure_ascii=False), "question": json.dumps(question, ensure_ascii=False), "ink": ink,
             "plan": profile, "page": page, "stem": f"{n:02}", "post_title": json.dumps(f"Day {n}: the post")}  # fmt: skip
    made = []
    for template, target in (("page.md", days / page), ("post.md", days / post), ("plan.yml", plan.PLANS / f"{profile}.yml")):
        labdata.write_text(target, Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(words))
        made.append(target)
    _name_in_nav(home / "mkdocs.yml", [f"days/{page}", f"days/{post}"])
    return made


def _name_in_nav(config: Path, pages: list[str]) -> None:
    """Add pages below the last one of days/ in mkdocs.yml, in its own indent.

    Raises:
        DeskError: there is no such list.
    """
    lines = config.read_text(encoding="utf-8").splitlines(keepends=True)
    last = max((i for i, line in enumerate(lines) if re.match(r"\s+- (.+: )?days/", line)), default=None)
    if last is None:
        raise DeskError(f"mkdocs.yml: nav: no page of days/ to follow; got none; add {' and '.join(pages)} by hand")
    indent = lines[last][: lines[last].index("-")]
    lines[last + 1 : last + 1] = [f"{indent}- {page}\n" for page in pages]
    labdata.write_text(config, "".join(lines))
