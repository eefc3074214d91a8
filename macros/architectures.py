"""Exact work against public logs: computed sizes and caches beside the printed ones, a row each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from macros import work
from macros.memory import Allocation, allocation
from macros.seen import CacheLog, SeenFile
from macros.shapes import Shape, layers

MIB = 2**20


@dataclass(frozen=True)
class Compared:
    """A printed figure and the computed one, in the same unit.

    Args:
        what: "size", "parameters", "KV cache", "KV cache, full", "KV cache, window", "state"
        setting: what it holds for, in words
    """

    file: SeenFile
    what: str
    setting: str
    printed: float
    computed: float
    unit: str

    @property
    def agrees(self) -> bool:
        """Within 1 %, or within what the printed digits leave open."""
        decimals = len(f"{self.printed:.6f}".rstrip("0").partition(".")[2])
        return abs(self.apart) <= 0.01 or abs(self.computed - self.printed) <= 0.5 * 10.0**-decimals

    @property
    def apart(self) -> float:
        """Computed over printed, less one (fraction)."""
        return self.computed / self.printed - 1


def sizes(files: list[SeenFile]) -> list[Compared]:
    """Parameters and sizes by llama.cpp's layout and recipe, where a file's mix is one."""
    found = []
    for f in files:
        table = f.table() if f.params or (f.size and f.mix) else []
        if f.params:
            found.append(Compared(f, "parameters", "", f.params.si / 1e9, work.total_params(table) / 1e9, "billion"))
        if f.size and f.mix:
            found.append(Compared(f, "size", f.mix, f.size.si / 2**30, work.total_bytes(table) / 2**30, "GiB"))
    return found


def types_differ(file: SeenFile) -> dict[str, tuple[int, int]]:
    """Matrix types whose number in the log and in the recipe differ: {type: (logged, computed)}.

    Vectors (F32) are left out: a layout has no rotation factors.
    """
    counts: dict[str, int] = {}
    for t in file.table():
        counts[t.type] = counts.get(t.type, 0) + t.count
    names = sorted((set(file.types) | set(counts)) - {"F32"})
    return {n: (file.types.get(n, 0), counts.get(n, 0)) for n in names if file.types.get(n, 0) != counts.get(n, 0)}


def caches(files: list[SeenFile]) -> list[Compared]:
    """Caches and states as llama.cpp allocates them, beside its logs."""
    found = []
    for f in files:
        for log in f.caches:
            ours = _allocated(f.shape.dims, log)
            for what, printed, computed in (
                ("KV cache", log.kv_mib, ours.kv),
                ("KV cache, full layers", log.full_mib, ours.kv_full),
                ("KV cache, windows", log.window_mib, ours.kv_window),
                ("state", log.state_mib, ours.state),
            ):
                if printed:
                    found.append(Compared(f, what, _setting(log), printed, computed / MIB, "MiB"))
    return found


def _allocated(shape: Shape, log: CacheLog) -> Allocation:
    """What llama.cpp sets aside for a logged setting; the log gives the cells as padded by its build."""
    if log.latent:
        shape = latent(shape)
    model = work.Structure(shape.arch, shape.n_layer, 0, 0, (), layers(shape))
    cache = work.Cache(log.type_k, log.type_v, log.n_ubatch, log.swa_full)
    return allocation(model, log.n_ctx, cache, log.sequences, log.unified, log.kept_states, pad=1)


def latent(shape: Shape) -> Shape:
    """The same model with its attention stored split (MLA): one latent vector a token is cached."""
    v_dim = shape.head_dim if shape.head_dim_v is None else shape.head_dim_v
    return replace(shape, n_head_kv=1, head_dim=shape.kv_lora_rank + shape.rope_dim, head_dim_v=shape.kv_lora_rank,
                   head_dim_mla=shape.head_dim, head_dim_v_mla=v_dim)  # fmt: skip


def _setting(log: CacheLog) -> str:
    parts = [f"{log.n_ctx:,} cells"]
    if log.sequences > 1:
        parts.append(f"{log.sequences} sequences" + ("" if log.unified else ", a stream each"))
    if (log.type_k, log.type_v) != ("F16", "F16"):
        parts.append(log.type_k if log.type_k == log.type_v else f"K {log.type_k}, V {log.type_v}")
    parts += [words for words, said in (("latent", log.latent), ("full-size windows", log.swa_full)) if said]
    if log.n_ubatch != work.Cache().n_ubatch:
        parts.append(f"ubatch {log.n_ubatch}")
    if log.kept_states:
        parts.append(f"{log.kept_states} states kept")
    return "; ".join(parts)
