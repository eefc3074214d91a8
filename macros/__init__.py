"""Inklab's macros. Glue only: what a page can call, each a line or two over the modules below.

Siblings are imported inside the functions, so that `import macros.roofline` loads neither
pandas nor MkDocs.
"""

from __future__ import annotations

import statistics
from functools import partial
from pathlib import Path
from typing import Any

_book: Any = None


def current_book() -> Any:
    """The Book of the build under way."""
    return _book


def define_env(env: Any) -> None:
    """Called by mkdocs-macros once a build."""
    global _book
    from jinja2 import pass_environment

    from macros import (
        accuracy_exhibits,
        architectures,
        compare,
        cost_exhibits,
        downloads,
        export,
        exhibits,
        figures,
        file_tables,
        front,
        history,
        labdata,
        mathml,
        narrative,
        pages,
        posts,
        roofline,
        rules,
        surprises,
        values,
    )

    lab = _load(labdata)
    _book = book = narrative.Book(lab, days=_days(Path(env.conf["docs_dir"])), firsts=history.firsts(labdata.ROOT),
                                  series_days=env.conf["extra"].get("series_days"))  # fmt: skip
    page = getattr(env, "page", None)
    if hasattr(page, "path"):  # Zensical defines the macros anew for each page, and calls nothing before it
        book.turn_to(page.url, page.path)
    pages.REPOSITORY = env.conf.get("repo_url") or ""

    for function in vars(roofline).values():
        if callable(function) and getattr(function, "__module__", "") == roofline.__name__:
            env.macro(function)
    for function in (book.machine, book.model, book.measured, book.inked, book.score, book.correction, book.afterthought):
        env.macro(function)
    for function, name in ((mathml.equation, "equation"), (mathml.frac, "frac"), (mathml.product, "product"), (mathml.product, "times_"), (mathml.total, "total")):
        env.macro(lambda *parts, build=function: build(*map(book.say, parts)), name)

    @env.macro
    def derived(n: float, unit: str, how: str, decimals: int | None = None) -> Any:
        return values.Value(n, unit, "derived", decimals=decimals, how=how)

    @env.macro
    def predicted(n: float, unit: str, how: str, decimals: int | None = None) -> Any:
        return values.Value(n, unit, "predicted", decimals=decimals, how=how)

    @env.macro
    def percent(fraction: float, how: str, decimals: int | None = None) -> Any:
        return values.percent(fraction, how=how, decimals=decimals)

    @env.macro
    def times(ratio: float, how: str, decimals: int | None = None) -> Any:
        return values.Value(ratio, "×", "derived", decimals=decimals, how=how)

    env.macro(book.open_part, "open")
    env.macro(posts.claim)

    @env.macro
    def summary(name: str, run: str | None = None) -> Any:
        return None if name not in lab.machines and book.wet(name) else posts.summary_of(book, name, run)

    env.macro(posts.differ_words, "differ")

    @env.macro
    def tally(ink: str) -> str:
        return book.wet(ink) or book.tally(ink)

    @env.macro
    def seal(ink: str) -> str:
        return book.wet(ink) or exhibits.seal(book, ink)

    @env.macro
    def ink_results(ink: str, id: str, caption: str) -> str:
        runs = [] if book.wet(ink) else lab.runs_on(ink)
        return exhibits.results_table(book, runs, id, caption) if runs else book.open_part(f"no run on ink {ink} yet")

    @env.macro
    def surprise(ink: str, prediction: str) -> str:
        return surprises.picked(compare.scores(lab, ink), prediction, ink)

    @env.macro
    def surprise_list(ink: str) -> str:
        return book.wet(ink) or surprises.listed(book, compare.scores(lab, ink), ink)

    @env.macro
    def ink_table(ink: str, id: str, caption: str) -> str:
        return book.wet(ink) or exhibits.ink_table(book, compare.scores(lab, ink), id, caption)

    @env.macro
    def anchor_table(ink: str, id: str, caption: str) -> str:
        return exhibits.anchor_table(book, ink, id, caption)

    @env.macro
    def ratio_figure(ink: str, id: str, caption: str) -> str:
        return exhibits.ratio_figure(book, compare.scores(lab, ink), id, caption)

    @env.macro
    def results_table(machine: str, runs: list[str], id: str, caption: str) -> str:
        return exhibits.results_table(book, [book.run(f"{machine}/{name}") for name in runs], id, caption)

    def deep(run: str, test: str, model: str | None) -> tuple[Any, str]:
        document = book.run(run)
        return document, model or next((r.model for r in document.results if r.test == test and r.depth), "")

    @env.macro
    def depth_figure(run: str, id: str, caption: str, test: str = "tg128", model: str | None = None, anchor: str | None = None) -> str:
        document, name = deep(run, test, model)
        base = book.result(anchor, test) if anchor else None
        return exhibits.depth_figure(book, document, test, name, id, caption, base)

    @env.macro
    def sweep_table(run: str, id: str, caption: str, test: str = "tg128", model: str | None = None, anchor: str | None = None) -> str:
        document, name = deep(run, test, model)
        base = book.result(anchor, test) if anchor else None
        return exhibits.sweep_table(book, document, test, name, id, caption, base)

    @env.macro
    def bandwidth_figure(entries: list, id: str, caption: str, test: str = "tg128") -> str:
        found = [(label, book.run(run), book.result(run, test, 0, model)) for label, run, model in entries]
        return exhibits.bandwidth_figure(book, found, id, caption)

    @env.macro
    def roofline_figure(ink: str, id: str, caption: str) -> str:
        runs = [] if book.wet(ink) else lab.runs_on(ink)
        return figures.roofline(book, runs, compare.scores(lab, ink, runs), id, caption) if runs else ""

    @env.macro
    def inked_figure(ink: str, id: str, caption: str) -> str:
        return "" if book.wet(ink) else figures.inked_scatter(book, compare.scores(lab, ink), id, caption)

    @env.macro
    def backend_figure(ink: str, id: str, caption: str) -> str:
        return "" if book.wet(ink) else figures.backend_ratios(book, compare.scores(lab, ink), id, caption)

    env.macro(figures.public_share)

    @env.macro
    def format_figure(entries: list, id: str, caption: str, test: str = "tg128") -> str:
        return figures.format_shares(book, [(book.run(run), book.result(run, test, 0, model)) for run, model in entries], id, caption)

    env.macro(partial(pages.machine_page, book), "machine_page")  # for MkDocs' successor

    @env.macro
    def machine_index(page: int = 1) -> str:
        return pages.machine_index(book, page)

    @env.macro
    def machine_cards(most: int = 4) -> str:
        return front.machine_cards(book, most)

    def spoken(jinja: Any) -> Any:  # as the template that asks hands it over: MkDocs' successor keeps it nowhere else
        return lambda words: jinja.from_string(words).render(**env.variables)

    @env.macro
    @pass_environment
    def today(jinja: Any) -> dict | None:
        return front.today(book, spoken(jinja))

    @env.macro
    @pass_environment
    def today_figure(jinja: Any, id: str) -> str:
        return front.today_figure(book, id, spoken(jinja))

    @env.macro
    def day_index(most: int | None = None) -> str:
        return front.day_index(book, most)

    env.macro(lambda derived: downloads.table_list(book, book.tables() if book.tables else downloads.listed(export.tables(book.lab)), derived), "data_tables")
    env.macro(partial(downloads.address, book), "data_href")

    @env.macro
    def check(name: str) -> dict:
        document = lab.get("checks", name)
        return {"title": values.inert(document.title), "setting": values.inert(document.setting), "date": document.date,
                "rows": book.checked(name), "loop_us": statistics.median(document.loop_ns) / 1e3 if document.loop_ns else None}  # fmt: skip

    @env.macro
    def checked(*names: str) -> bool:  # a lab of an earlier release has fewer
        return set(names) <= set(lab.checks)

    @env.macro
    def checks_of(kind: str) -> list[str]:
        return sorted((name for name in lab.checks if name.startswith(f"{kind}-")), reverse=True)

    @env.macro
    def check_table(name: str, id: str, caption: str) -> str:
        return exhibits.check_table(book, name, id, caption)

    @env.macro
    def trials(name: str) -> dict | None:
        document = lab.trials.get(name)
        return document and {"setting": values.inert(document.setting), "date": document.started_at.date(),
                             "times": sum(t.times for t in document.trials), "lost": sum(t.lost + t.half for t in document.trials),
                             "kills": sum(t.times for t in document.trials if "kill -9" in t.fault)}  # fmt: skip

    for exhibit in (exhibits.trials_table, cost_exhibits.cost_table, cost_exhibits.growth_figure):
        env.macro(partial(exhibit, book), exhibit.__name__)

    files = lab.gguf_files.files if lab.gguf_files else []

    @env.macro
    def architectures_known(id: str, caption: str) -> str:
        return file_tables.known_table(book, id, caption)

    @env.macro
    def compared(what: str) -> list:
        return architectures.sizes(files) if what == "sizes" else architectures.caches(files)

    @env.macro
    def compared_table(what: str, id: str, caption: str) -> str:
        return file_tables.compared_table(book, compared(what), id, caption)

    @env.macro
    def batch_table(names: list[str], machine: str, batches: list[int], depth: int, id: str, caption: str) -> str:
        return file_tables.batch_table(book, [lab.file(n) for n in names], machine, batches, depth, id, caption)

    @env.macro
    def speculation_table(pairs: list, machine: str, drafted: list[int], acceptance: list[float], id: str, caption: str) -> str:
        found = [(lab.file(target), lab.file(draft) if draft else None) for target, draft in pairs]
        return file_tables.speculation_table(book, found, machine, drafted, acceptance, id, caption)

    @env.macro
    def gguf_file(name: str) -> Any:
        return file_tables.FileView(lab.file(name))

    @env.macro
    def calibrated(machine: str, model: str, test: str, depth: int = 0) -> Any:
        from macros import subject_load

        p = subject_load.predict(lab.get("machines", machine), lab.get("models", model), test, depth)
        how = f"calibrated predictor, {test} at depth {depth}; 80 % interval {p.low_tok_s:.4g} to {p.high_tok_s:.4g} tok/s"
        return values.Value(p.tok_s, "tok/s", "predicted", how=how)

    @env.macro
    def side_by_side() -> Any:
        from macros import compare_page

        return compare_page.View(book)

    @env.macro
    def yours(machine: str, model: str, depth: int = 0) -> Any:
        from macros import yours_page

        return yours_page.Example(book, machine, model, depth)

    env.macro(accuracy_exhibits.facts, "accuracy")
    for name, made in (("score_table", accuracy_exhibits.score_table), ("score_figure", accuracy_exhibits.scatter),
                       ("residual_figure", accuracy_exhibits.residuals), ("miss_table", accuracy_exhibits.worst_table)):  # fmt: skip
        env.macro(partial(made, book), name)

    env.macro(rules.rules)
    env.macro(rules.verdict_list)


def _load(labdata: Any) -> Any:
    """The lab, its problems and its history's as one MkDocs message instead of a traceback."""
    from mkdocs.exceptions import PluginError

    from macros import accuracy, history, processes

    accuracy.forget_what_changed()
    changed = processes.beside(history.problems, labdata.ROOT)
    found: list[str] = []
    try:
        lab = labdata.load()
        found = history.late(lab, labdata.ROOT)
    except labdata.LabError as error:
        found = error.problems
    found = [*found, *changed()]
    if found:
        raise PluginError("labdata:\n" + "\n".join(found))
    return lab


def _days(docs: Path) -> list:
    """Every page under docs/days whose front matter says which day it is."""
    from mkdocs.exceptions import PluginError
    from mkdocs.utils.meta import get_data

    from macros.narrative import Day

    found = []
    for path in sorted(docs.glob("days/*.md")):
        _, meta = get_data(path.read_text(encoding="utf-8"))
        if "day" in meta:
            lacking = [k for k in ("title", "question") if k not in meta]
            if lacking or not isinstance(meta["day"], int):
                raise PluginError(f"docs/days/{path.name}: front matter: a day needs a whole number as day, title, question; got {meta['day']!r}, without {', '.join(lacking) or 'nothing else'}")
            more = {k: meta[k] for k in ("answer", "figure", "next", "formula") if meta.get(k)}
            found.append(Day(meta["day"], meta["title"], meta["question"], meta.get("ink", ""), f"days/{path.stem}/", **more))
    return sorted(found, key=lambda day: day.number)


def on_pre_page_macros(env: Any) -> None:
    """Called before each page: links start from it, figures count from one; then render it here.

    The plugin would answer a mistake with a traceback, exit code 100 and a dead `mkdocs serve`;
    this way it is one line with file and line, exit code 1, and a server that waits for the cure.
    """
    from macros import asides, rendering

    page = env.page
    _book.turn_to(page.url, page.file.src_uri)
    if page.meta.get("render_macros") is False:
        return
    env.markdown = rendering.rendered(env, env.markdown, page.meta, f"docs/{page.file.src_uri}", rendering.lines_above(page), lambda value: asides.aside(_book.say(value)))
    page.meta["render_macros"] = False  # done; a second pass would read the output as macros
