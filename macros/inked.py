"""A prediction and what it came to, as Values: a page's view of `macros.inks`."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from macros import notes
from macros.compare import Measured
from macros.inks import Prediction, Target
from macros.values import WHERE, Facts, Value, as_typed


@dataclass(frozen=True)
class InkedText:
    """An inked prediction that is not one number: an interval, or a direction."""

    text: str
    facts: Facts = ()
    href: str = ""
    low: Value | None = None
    high: Value | None = None

    def __html__(self) -> str:
        where = Markup(f'<a href="{notes.safe(self.href)}">{WHERE["predicted"]}</a>')
        first = f'<b class="predicted">{notes.safe(self.text)}</b>, predicted'
        return notes.refer(self.text, "v predicted", notes.facts(first, (*self.facts, ("See", where))))

    def __str__(self) -> str:
        return self.__html__()


def inked_value(p: Prediction, facts: Facts = (), href: str = "") -> Value | InkedText:
    """A prediction as printed: numbers as inked, ratios as %, intervals as low–high, directions in words."""
    if p.kind == "direction":
        return InkedText(str(p.direction), facts, href)
    if p.kind == "ordering":
        return InkedText(" > ".join(_apart(p.targets)), facts, href)
    unit = "%" if p.unit == "1" else p.unit
    scale = 100 if unit == "%" else 1

    def value(x: float) -> Value:
        return Value(x * scale, unit, "predicted", decimals=as_typed(x * scale), name=p.quantity, facts=facts, href=href)

    if p.kind == "interval":
        low, high = value(p.low), value(p.high)  # type: ignore[arg-type]
        shown = max(low.decimals or 0, high.decimals or 0)
        low, high = low.d(shown), high.d(shown)
        return InkedText(f"{low.bare}–{high.text}", facts, href, low, high)
    return value(p.value)  # type: ignore[arg-type]


def _apart(targets: list[Target]) -> list[str]:
    """Tests named by what they differ in, the rest left out."""
    parts = [(t.experiment, t.test, f"@ d{t.depth}", t.model) for t in targets]
    told = [len({p[i] for p in parts}) > 1 for i in range(4)]
    told[0] = told[0] and not any(told[1:])  # the experiment's name only where nothing else tells them apart
    return [" ".join(w for w, shown in zip(p, told, strict=True) if shown) or t.label for p, t in zip(parts, targets, strict=True)]


def measured_value(p: Prediction, m: Measured, facts: Facts = (), href: str = "") -> Value:
    """What a prediction's target came to, in the prediction's unit (ratios as %, an ordering's weakest pair as ×)."""
    if p.kind == "ordering":
        how = "faster over slower, of the neighbours that bear it out least"
        return Value(m.mean, "×", "measured", sigma=m.sigma or None, how=how, facts=facts, href=href)
    scale, unit = (100, "%") if p.unit == "1" else (1, p.unit)
    sigma, over = m.sigma * scale or None, f" over {p.over.label}" if p.over else ""
    return Value(m.mean * scale, unit, "measured", sigma=sigma, how=f"{p.of.label}{over}", name=p.quantity, facts=facts, href=href)
