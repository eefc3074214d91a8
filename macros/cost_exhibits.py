"""What the lab's own commands take, from the newest record of `make perf`: a table, and growth with size."""

from __future__ import annotations

import pandas as pd
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


def frame(record: Costs) -> pd.DataFrame:
    """A record as rows, with what each machine more than in the next smaller lab costs [s].

    Columns: what, machines, runs, wall_s, cpu_s, peak_bytes, limit_s, limit_bytes, a_machine_s (NaN where there is no smaller lab).
    """
    rows = pd.DataFrame([c.model_dump() for c in record.costs]).sort_values(["what", "machines"], kind="stable")
    more = rows.groupby("what")[["wall_s", "machines"]].diff()
    rows["a_machine_s"] = more["wall_s"] / more["machines"].where(more["machines"] > 0)
    order = {what: i for i, what in enumerate(dict.fromkeys(c.what for c in record.costs))}  # each command's sizes side by side
    return rows.sort_values("what", key=lambda names: names.map(order), kind="stable")


def cost_table(book: Book, id: str, caption: str) -> str:
    """Time and memory by command and size; empty where nothing was recorded."""
    record = newest(book)
    if record is None:
        return ""
    rows = frame(record)
    cells = []
    for r in rows.to_dict("records"):
        limit = [f"{r['limit_s']:g}\u202fs"] if r["limit_s"] > 0 else []
        limit += [f"{r['limit_bytes'] / 1e6:g}\u202fMB"] if r["limit_bytes"] and r["limit_bytes"] > 0 else []
        cells.append({"what": Markup('{} <span class="note">{}</span>').format(r["what"], f"{r['machines']:,} machines, {r['runs']:,} runs" if r["machines"] else ""),
                      "wall": _seconds(r["wall_s"]), "cpu": _seconds(r["cpu_s"]), "peak": number(r["peak_bytes"] / 1e6, 0),
                      "limit": ", ".join(limit), "more": number(r["a_machine_s"] * 1e3, 1) if pd.notna(r["a_machine_s"]) else ""})  # fmt: skip
    columns = [Column("what", "Command"), Column("wall", "Time [s]", "right", "measured"), Column("cpu", "CPU [s]", "right"),
               Column("peak", "Memory [MB]", "right"), Column("limit", "Limit", "right"), Column("more", "A machine more [ms]", "right")]  # fmt: skip
    words = f"{caption} {record.setting}; {compare.share(record.load_before)} of the cores in use before it; {record.started_at:%-d %B %Y}."
    return tables.table_figure(id, book.number("table"), tables.html_table(columns, cells), words, evidence.publish(book, id, rows))


def growth_figure(book: Book, id: str, caption: str) -> str:
    """Seconds by size of the lab; empty where fewer than two sizes were recorded."""
    record = newest(book)
    rows = frame(record) if record else pd.DataFrame(columns=["what", "machines"])
    rows = rows[rows["what"].isin(DRAWN) & (rows["machines"] > 0)]
    if rows["machines"].nunique() < 2:
        return ""
    rows = rows[["what", "machines", "wall_s"]]
    words = "; ".join(f"{what}: " + ", ".join(f"{r.wall_s:g} s at {r.machines:,}" for r in part.itertuples()) for what, part in rows.groupby("what"))
    return evidence.figure(book, id, "growth", rows, caption, f"Seconds by number of machines, both axes logarithmic. {words}.")


def _seconds(x: float) -> str:
    return number(x, decimals_for(x, 2))
