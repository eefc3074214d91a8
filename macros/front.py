"""What the front page and the lists of days show: machines in a sentence, the newest day, its chart."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from macros import compare, exhibits, headlines, summary
from macros.narrative import Book
from macros.values import inert


def machine_cards(book: Book, most: int) -> str:
    """The machines on the front page, the last measured first: name and one sentence each."""
    lab, items = book.lab, []
    newest = {m: lab.newest(m) for m in lab.machines}
    for name in sorted(sorted(newest), key=newest.__getitem__, reverse=True)[:most]:
        machine = lab.machines[name]
        link = Markup('<a href="{}">{}</a>').format(book.link(f"machines/{name}/"), machine.name)
        sentence = headlines.read(book, machine, lab.runs_of(name)).headline.html
        items.append(Markup("<dt>{}</dt> <dd>{}</dd>").format(link, sentence))
    return Markup('<dl class="cards">{}</dl>').format(Markup("").join(items))


def today(book: Book, spoken: Callable[[str], str]) -> dict | None:
    """The newest day for the front page: number, title, question, href, and the answer in one computed sentence; None before the first.

    Args:
        spoken: renders a front matter's words, macros and all
    """
    if not book.days:
        return None
    day = book.days[-1]
    score = f"{book.tally(day.ink)}." if day.ink in book.lab.inks else "Not inked yet."
    return {"number": day.number, "title": inert(day.title), "question": inert(day.question), "href": book.link(day.address),
            "answer": spoken(day.answer) or score, "score": score}  # fmt: skip


def today_figure(book: Book, id: str, spoken: Callable[[str], str]) -> str:
    """The newest day's chart: the sweep its front matter names, else its ink against its measurements; nothing before there are any."""
    day = book.days[-1]
    if day.figure:
        run = book.run(day.figure["run"])
        test = day.figure["test"]
        model = next(r.model for r in run.results if r.test == test and r.depth)
        return exhibits.depth_figure(book, run, test, model, id, spoken(day.figure["caption"]))
    if summary.lacking(book, day):
        return ""
    return exhibits.ratio_figure(book, compare.scores(book.lab, day.ink), id, "Measured over predicted, for every number that was inked.")


def day_index(book: Book, most: int | None = None) -> str:
    """The days: number, title, question, score; the newest first where only some are asked for."""
    items = []
    for day in book.days[::-1][:most] if most else book.days:
        link = Markup('<a href="{}">Day {}: {}</a>').format(book.link(day.address), day.number, day.title)
        score = "" if summary.lacking(book, day) else f"{summary.of_day(book, day).score}."
        items.append(Markup("<dt>{}</dt> <dd>{} {}</dd>").format(link, day.question, score))
    return Markup('<dl class="cards">{}</dl>').format(Markup("").join(items))
