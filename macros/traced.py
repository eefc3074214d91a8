"""A float that remembers which values it came from, so that a computed number can name its inputs.

Nobody lists them by hand: plain arithmetic, `macros.roofline` included, carries them along.
What is lost on the way (`int`, `math.sqrt`, numpy) is an ordinary number again, and names none.
"""

from __future__ import annotations

from typing import Any


class Traced(float):
    """A number and the values it was computed from.

    >>> bandwidth, file = Traced(120e9, ("120 GB/s",)), Traced(5.03e9, ("5.03 GB",))
    >>> (8 * bandwidth / file / 1e9).inputs
    ('120 GB/s', '5.03 GB')
    """

    inputs: tuple[Any, ...]

    def __new__(cls, number: float, inputs: tuple[Any, ...] = ()) -> Traced:
        made = super().__new__(cls, number)
        made.inputs = inputs
        return made


def _carrying(name: str) -> Any:
    plain = getattr(float, name)

    def operation(self: Traced, *others: Any) -> Any:
        result = plain(self, *others)
        if result is NotImplemented:
            return result
        return Traced(result, tuple(dict.fromkeys(i for x in (self, *others) for i in getattr(x, "inputs", ()))))

    return operation


for _name in "add radd sub rsub mul rmul truediv rtruediv pow rpow neg abs".split():
    setattr(Traced, f"__{_name}__", _carrying(f"__{_name}__"))
