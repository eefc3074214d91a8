"""Tables of exact work: the architectures known, and computed sizes beside logged ones."""

from __future__ import annotations

from markupsafe import Markup

from macros import batching, shapes, work
from macros.architectures import Compared
from macros.evidence import table
from macros.memory import allocation, check_fit
from macros.narrative import Book
from macros.seen import SeenFile
from macros.tables import Column
from macros.values import Value, decimals_for, inert, number, percent

def compared_table(book: Book, rows: list[Compared], id: str, caption: str) -> str:
    """Printed against computed, a row each, with the CSV."""
    sources = book.lab.gguf_files.sources
    cells = []
    for r in rows:
        source = sources[r.file.shape.source]
        name = inert(r.file.name)
        decimals = max(decimals_for(r.printed, 4), 2 if r.printed < 10_000 else 0)
        cells.append({
            "file": Markup('<a href="{}">{}</a>').format(source.url, name) if source.url else name,
            "arch": r.file.shape.arch,
            "what": f"{r.what} [{r.unit}]" + (f", {r.setting}" if r.setting else ""),
            "printed": number(r.printed, decimals),
            "computed": number(r.computed, decimals),
            "apart": percent(r.apart, how="computed ÷ printed − 1", decimals=2).text,
        })  # fmt: skip
    columns = [
        Column("file", "File"), Column("arch", "Architecture"), Column("what", "What"),
        Column("printed", "Printed", "right", "measured"), Column("computed", "Computed", "right", "predicted"),
        Column("apart", "Apart", "right"),
    ]  # fmt: skip
    found = [{"file": r.file.id, "arch": r.file.shape.arch, "what": r.what, "setting": r.setting,
              "printed": r.printed, "computed": r.computed, "unit": r.unit,
              "source": sources[r.file.shape.source].url or sources[r.file.shape.source].note} for r in rows]  # fmt: skip
    return table(book, id, columns, cells, found, caption)


def known_table(book: Book, id: str, caption: str) -> str:
    """Every architecture known by name, and what it keeps for a context."""
    groups: dict[str, list[str]] = {}
    for name, rule in sorted(shapes.ARCHITECTURES.items()):
        groups.setdefault(_words(rule), []).append(name)
    cells = [{"keeps": words, "names": Markup(", ").join(Markup("<code>{}</code>").format(n) for n in names)} for words, names in groups.items()]
    found = [{"architecture": n, "keeps": words} for words, names in groups.items() for n in names]
    columns = [Column("keeps", "What a layer keeps"), Column("names", "general.architecture")]
    return table(book, id, columns, cells, found, caption)


def _words(rule: shapes.Architecture) -> str:
    kept = {
        "": "Keys and values of every token",
        "all": "A recurrent state in every layer",
        "no_kv": "A state in layers without KV heads, keys and values in the others",
        "no_kv_no_ff": "A state, keys and values, or neither (feed-forward layers)",
        "interval": "A state in all but one layer in so many (4 where the file does not say)",
        "beside": "A state beside keys and values, in every layer",
    }[rule.recurrent]
    if rule.period == 1:
        kept += "; a window in the layers the file names"
    elif rule.period:
        kind = "the position’s own chunk" if rule.chunked else "a window"
        kept += f"; {kind} in {rule.period - 1} of {rule.period} layers"
    if rule.kv_layers:
        kept += f"; layers after the first {rule.kv_layers} read an earlier one’s"
    return kept


def batch_table(book: Book, files: list[SeenFile], machine: str, batches: list[int], depth: int, id: str, caption: str) -> str:
    """Decode bounds against batch for some files on a machine's roofs, with the crossover to compute;
    a batch whose weights and caches exceed the memory has none."""
    specs = book.lab.machines[machine].specs
    if specs.peak_compute is None:
        raise ValueError(f"labdata/machines/{machine}.yml: specs.peak_compute: not known")
    bandwidth, peak = specs.memory_bandwidth.si, specs.peak_compute.si
    cells, found = [], []
    for f in files:
        model = work.structure(f.shape.dims, f.table())
        row = {"file": inert(f.name)}
        for b in batches:
            try:
                check_fit(allocation(model, depth + 1, sequences=b, unified=False), specs.memory.si)
            except ValueError:
                row[f"b{b}"] = "does not fit"
                continue
            rate = batching.decode_rate_tok_s(model, b, bandwidth, peak, depth)
            row[f"b{b}"] = number(rate, decimals_for(rate))
            experts = work.expected_experts(model.n_expert, model.n_expert_used, b) if model.n_expert else 0.0
            found.append({"file": f.id, "machine": machine, "depth_tokens": depth, "batch": b, "bound_tok_s": rate, "experts_a_layer": experts})
        try:
            row["crossover"] = str(batching.crossover_batch(model, bandwidth, peak, depth))
        except ValueError:
            row["crossover"] = "never"
        cells.append(row)
    columns = [Column("file", "File"), *(Column(f"b{b}", f"Batch {b} [tok/s]", "right", "predicted") for b in batches),
               Column("crossover", "Compute-bound from batch", "right")]  # fmt: skip
    return table(book, id, columns, cells, found, caption)


def speculation_table(book: Book, pairs: list[tuple[SeenFile, SeenFile | None]], machine: str, drafted: list[int], acceptance: list[float], id: str, caption: str) -> str:
    """What speculative decoding gains for an acceptance rate, on a machine's roofs."""
    specs = book.lab.machines[machine].specs
    if specs.peak_compute is None:
        raise ValueError(f"labdata/machines/{machine}.yml: specs.peak_compute: not known")
    cells, found = [], []
    for target, draft in pairs:
        big, small = (work.structure(f.shape.dims, f.table()) if f else None for f in (target, draft))
        words = f"{target.name}, drafts by {draft.name}" if draft else f"{target.name}, drafts for nothing"
        for rate in acceptance:
            row = {"pair": inert(words), "rate": percent(rate, how="assumed", decimals=0).text}
            for n in drafted:
                gain = batching.speculative_gain(big, small, rate, n, specs.memory_bandwidth.si, specs.peak_compute.si)
                row[f"n{n}"] = f"{number(gain, 2)}×"
                found.append({"target": target.id, "draft": draft.id if draft else "", "machine": machine, "acceptance": rate, "drafted": n, "gain": gain})
            cells.append(row)
    columns = [Column("pair", "Models"), Column("rate", "Accepted", "right"),
               *(Column(f"n{n}", f"{n} drafted", "right", "predicted") for n in drafted)]  # fmt: skip
    return table(book, id, columns, cells, found, caption)


class FileView:
    """One file's work as Values, for a sentence."""

    def __init__(self, file: SeenFile) -> None:
        self.name = inert(file.name)
        self._model = work.structure(file.shape.dims, file.table())

    def read(self, group: str, depth: int = 0, full: bool = False) -> Value:
        """Bytes a decode step reads of one group [MB]; full: as if windows had a cache of full size."""
        step = work.decode(self._model, depth, cache=work.Cache(swa_full=full))
        return Value(step.bytes_by_group[group] / 1e6, "MB", "derived", decimals=0, how=f"exact work, {group}, depth {depth}")

    def active(self) -> Value:
        """Parameters a token is multiplied with, head included [billion]."""
        n = self._model.body_params + sum(w.params for w in self._model.weights if w.role == "head")
        return Value(n / 1e9, "billion", "derived", how="body + head + used share of the experts")

    def stored(self) -> Value:
        """Parameters in matrices [billion]."""
        return Value(sum(w.params for w in self._model.weights) / 1e9, "billion", "derived", how="sum of the tensor table")
