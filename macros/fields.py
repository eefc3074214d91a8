"""What every file in labdata/ is made of: strict models, sources, values with units.

Unknown keys, NaN, wrong types and missing sources are refused here; references between
files are checked by `macros.labdata`. Descriptions and examples feed the editors' JSON
Schema and labdata/README.md, so they are written once.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from macros import guard, units, versions

MAX_TEXT = 4000  # characters of any text; the longest note of the lab has 500
MAX_NAME = 200
LARGEST = 10**18  # of any number as written, and its inverse the smallest above 0: nothing computed from them overflows
Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=80)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(guard.name)]
Positive = Annotated[float, Field(ge=1 / LARGEST, le=LARGEST)]
NotBelow0 = Annotated[float, Field(ge=0, le=LARGEST)]
Count = Annotated[int, Field(gt=0, le=LARGEST)]
NotNegative = Annotated[int, Field(ge=0, le=LARGEST)]


def slug(text: str) -> str:
    """A name as an id: small letters, digits and hyphens.

    >>> slug("Apple M4 (10-core GPU), 24 GB")
    'apple-m4-10-core-gpu-24-gb'
    """
    return re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-._")[:80] or "machine"


def key(description: str, *examples: object, **kw: object):
    """A field with its meaning (unit included) and an example, for schema and README."""
    return Field(description=description, examples=list(examples), **kw)


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, str_max_length=MAX_TEXT)


class Source(Strict):
    """Where a value comes from. One of url, raw or note says how to get there."""

    title: str = key("What the source is", "Apple: MacBook Pro (14-inch, M4) tech specs")
    kind: Literal["published", "measured", "derived", "assumed"] = key(
        "How the value came about", "published"
    )
    url: str | None = key("Its address", "https://support.apple.com/en-us/121552", default=None, pattern=r"^https?://[^\s\\]+$", max_length=2000)
    raw: str | None = key("A file in labdata/raw that holds it", "day-01.yml", default=None, pattern=r"^[A-Za-z0-9._-]+$")
    note: str | None = key("How it was measured, derived or why it is assumed", "10 cores x 128 FMA x 2 x 1.578 GHz", default=None)

    @model_validator(mode="after")
    def reachable(self) -> Source:
        if not (self.url or self.raw or self.note):
            raise ValueError("a source needs url, raw or note")
        return self


class Quantity(Strict):
    """A value with its unit and its source."""

    value: Positive = key("The number, in `unit`", 120)
    unit: Literal[tuple(units.UNITS)] = key("Its unit; GB is 1e9 B, GiB is 2^30 B", "GB/s")  # type: ignore[valid-type]
    source: str = key("A key of this file's `sources`", "apple")
    upper: Positive | None = key("Upper end, where only a range is known", 65, default=None)
    note: str | None = key("What a reader should know about it", "CPU and GPU share the bus", default=None)

    @property
    def si(self) -> float:
        """The value in its base unit (B, B/s, FLOP/s, ...)."""
        return units.to_si(self.value, self.unit)


class Compute(Quantity):
    """A peak compute rate and the precision it holds for."""

    precision: Literal["fp16", "fp32", "int8"] = key("Which peak this is", "fp16")


class Document(Strict):
    schema_version: Literal[versions.CURRENT] = key("Version of this file's layout", 1, alias="schema")  # type: ignore[valid-type]
    sources: dict[str, Source] = key("Every source named in this file", {"apple": "..."}, default_factory=dict)
