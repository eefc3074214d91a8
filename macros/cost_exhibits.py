"""What the lab's own commands take, from the newest record of `make perf`: a table, and growth with size."""

from __future__ import annotations

from itertools import groupby

from markupsafe import Markup

from macros import compare, evidence, tables
from macros.costs import Costs
from macros.narrative import Book
from macros.tables import Column
from macros.values import decimals_for, number

DRAWN = ("cold build", "warm rebuild", "check", "load")


def newest(book: Book) -> Costs | None:
    """The newest record; None: nothing was recorded yet."""
    return max(book.lab.costs.values(), key=lambda c: c.started_at, default=None)


def rows(record: Costs) -> list[dict]:
    """A record as rows, each command's sizes side by side, with what each machine more than in the next smaller lab costs [s].

    Keys: what, machines, runs, wall_s, cpu_s, peak_bytes, limit_s, limit_bytes, a_machine_s (None where there is no smaller lab).
    """
    order = {what: i for i, what in enumerate(dict.fromkeys(c.what for c in record.costs))}
    found: list[dict] = []
    for cost in sorted(record.costs, key=lambda c: (order[c.what], c.machines)):
        more = cost.machines - found[-1]["machines"] if found and found[-1]["what"] == cost.what else 0
        found.append({**cost.model_dump(), "a_machine_s": (cost.wall_s - found[-1]["wall_s"]) / more if more else None})
    return found


def cost_table(book: Book, id: str, caption: str) -> str:
    """Time and memory by command and size; empty where nothing was recorded."""
    record = newest(book)
    if record is None:
        return ""
    found, cells = rows(record), []
    for r in found:
        limit = [f"{r['limit_s']:g}\u202fs"] if r["limit_s"] else []
        limit += [f"{r['limit_bytes'] / 1e6:g}\u202fMB"] if r["limit_bytes"] else []
        cells.append({"what": Markup('{} <span class="note">{}</span>').format(r["what"], f"{r['machines']:,} machines, {r['runs']:,} runs" if r["machines"] else ""),
                      "wall": _seconds(r["wall_s"]), "cpu": _seconds(r["cpu_s"]), "peak": number(r["peak_bytes"] / 1e6, 0),
                      "limit": ", ".join(limit), "more": number(r["a_machine_s"] * 1e3, 1) if r["a_machine_s"] is not None else ""})  # fmt: skip
    columns = [Column("what", "Command"), Column("wall", "Time [s]", "right", "measured"), Column("cpu", "CPU [s]", "right"),
               Column("peak", "Memory [MB]", "right"), Column("limit", "Limit", "right"), Column("more", "A machine more [ms]", "right")]  # fmt: skip
    words = f"{caption} {record.setting}; {compare.share(record.load_before)} of the cores in use before it; {record.started_at:%-d %B %Y}."
    return tables.table_figure(id, book.number("table"), tables.html_table(columns, cells), words, evidence.publish(book, id, found))


def growth_figure(book: Book, id: str, caption: str) -> str:
    """Seconds by size of the lab; empty where fewer than two sizes were recorded."""
    record = newest(book)
    found = [{k: r[k] for k in ("what", "machines", "wall_s")} for r in (rows(record) if record else []) if r["what"] in DRAWN and r["machines"]]
    if len({r["machines"] for r in found}) < 2:
        return ""
    words = "; ".join(f"{what}: " + ", ".join(f"{r['wall_s']:g} s at {r['machines']:,}" for r in part) for what, part in groupby(sorted(found, key=lambda r: r["what"]), key=lambda r: r["what"]))
    return evidence.figure(book, id, "growth", found, caption, f"Seconds by number of machines, both axes logarithmic. {words}.")


def _seconds(x: float) -> str:
    return number(x, decimals_for(x, 2))
