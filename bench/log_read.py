"""A whole log, of one format or several mixed with prose: text in, tests and what was skipped out. Pure.

Nothing is dropped unsaid: a line is a test, part of one, skipped with a reason, or counted as text around them.
"""

from __future__ import annotations

import bisect
import json
import re
from dataclasses import replace
from typing import Any

from bench import log_clocks, log_tables, log_text
from bench.gpu_parse import Gpu
from bench.log_rows import NotARow, Read, Row, Skipped, from_fields

MAX_BROKEN = 1000  # JSON that does not parse, after which no more is tried: each try may walk the whole text
JSON = json.JSONDecoder()
NOT_JSON_NUMBER = re.compile(r"(?<=[:,\[ ])-?(?:nan|inf)(?=[\s,}\]])")  # what C++ prints; Python's json wants NaN


def read(text: str) -> Read:
    """Every test of a log."""
    return _Reader(text).run()


class _Reader:
    """Walks the lines once; JSON is decoded from where it begins, everything else line by line."""

    def __init__(self, text: str) -> None:
        self.lines = log_text.lines(text)
        # as long as before, so that places in it stay places
        self.text = NOT_JSON_NUMBER.sub(lambda m: "NaN".rjust(len(m[0])), "\n".join(self.lines))
        self.starts = [0]
        for line in self.lines[:-1]:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.found, self.part, self.broken = Read(), 0, 0
        self.header: list[str] | None = None  # of the markdown table we are in
        self.csv_header: list[str] | None = None
        self.in_table = False
        self.devices: list[Gpu] = []  # named since the last table
        self.gpus: dict[int, tuple[Gpu, ...]] = {}  # by part
        self.builds: dict[int, str] = {}
        self.unbuilt: list[int] = []  # tables still waiting for their footer

    def run(self) -> Read:
        i = 0
        while i < len(self.lines):
            i = self._line(i)
        self.found.rows = self._sealed()
        return self.found

    def _line(self, i: int) -> int:
        """Take the line at i; return the line to go on with."""
        line = self.lines[i]
        bare = line.strip()
        if bare[:1] in ("{", "["):
            after = self._json(i)
            if after is not None:
                return after
        if not bare:
            self.in_table = False
        elif gpu := log_tables.device(line):
            self.devices.append(gpu)
            self.in_table, self.header = False, None
            self.found.other_lines += 1
        elif built := log_tables.build(line):
            self.builds |= dict.fromkeys(self.unbuilt, built)
            self.unbuilt, self.in_table, self.header = [], False, None
            self.found.other_lines += 1
        elif re.match(r"INSERT\s+INTO\b", bare, re.I):
            self._take("sql", i, lambda: log_tables.sql_row(line, i + 1))
        elif log_tables.is_csv_header(bare):
            self.csv_header = [c.strip().strip('"') for c in bare.split(",")]
        elif self.csv_header and (bare.startswith('"') or bare.count(",") == len(self.csv_header) - 1):
            header = self.csv_header
            self._take("csv", i, lambda: log_tables.csv_row(bare, header, i + 1))
        elif bare.startswith('"') and bare.count('","') > 15:
            self.found.skipped.append(Skipped(i + 1, "csv without its header line: its columns are not known"))
        elif log_tables.is_row(line) or (self.in_table and "|" in line and len(line) <= log_tables.MAX_ROW):
            self._table_line(i)
        else:
            self._prose()
        return i + 1

    def _prose(self) -> None:
        self.in_table = False
        self.found.other_lines += 1

    def _take(self, kind: str, i: int, parse: Any) -> None:
        try:
            self.found.take(kind, [parse()])
        except NotARow as error:
            self.found.skipped.append(Skipped(i + 1, str(error)))

    def _table_line(self, i: int) -> None:
        parts = log_text.cells(self.lines[i])
        if log_tables.is_rule(parts):
            return
        if log_tables.is_header(parts):
            self._new_table(parts)
            return
        if not self.in_table and self.header and len(parts) == len(self.header):
            self.in_table = True  # something was printed between two rows
        if not self.in_table and log_tables.ends(parts) is not None:
            self._new_table(None)
        if not self.in_table:
            self.found.skipped.append(Skipped(i + 1, "a table that is not llama-bench's: no header with model and t/s, no test beside a rate"))
            return
        header = self.header
        self._take("markdown", i, lambda: log_tables.markdown_row(parts, header, i + 1, self.part))

    def _new_table(self, header: list[str] | None) -> None:
        self.part += 1
        self.header, self.in_table = header, True
        self.unbuilt.append(self.part)
        if self.devices:
            self.gpus[self.part] = tuple(self.devices)
            self.devices = []

    def _json(self, i: int) -> int | None:
        """Records of the JSON that begins on line i; the line after it, or None where none begins."""
        at = self.starts[i] + len(self.lines[i]) - len(self.lines[i].lstrip())
        if self.text[at] == "[":
            following = re.compile(r"\[\s*(?=[{\]])|\[\s*$").match(self.text, at)
            if not following:
                return None
            at = following.end()
            if at >= len(self.text):
                self.found.skipped.append(Skipped(i + 1, "cut short: a JSON array with nothing in it"))
                return len(self.lines)
            if self.text[at] == "]":
                return self._after(at + 1, i)
        if self.broken >= MAX_BROKEN:
            if self.broken == MAX_BROKEN:
                self.found.skipped.append(Skipped(i + 1, f"JSON: {MAX_BROKEN} pieces before this line were broken; none from here on was tried"))
            self.broken += 1
            return None
        while True:
            line = self._line_of(at) + 1
            try:
                value, end = JSON.raw_decode(self.text, at)
            except (ValueError, RecursionError) as error:
                self.broken += 1
                why = self._why(error)
                if why is None:
                    return None
                self.found.skipped.append(Skipped(line, why))
                return len(self.lines) if "cut short" in why else max(i + 1, line)
            self._records(value, line)
            more = re.compile(r"[\s,]*(?=\{)").match(self.text, end)
            if not more:
                return self._after(end, i)
            at = more.end()

    def _why(self, error: Exception) -> str | None:
        """Why JSON does not parse; None where it never was JSON."""
        if isinstance(error, RecursionError):
            return "JSON nested too deeply"
        if not isinstance(error, json.JSONDecodeError):
            return f"JSON: {error}"
        rest = self.text[error.pos :].strip()
        unterminated = error.msg.startswith("Unterminated string") or len(rest) <= 5 and "tru fals nul NaN".find(rest) >= 0
        if not rest or unterminated:
            return "cut short: the JSON ends inside a record"
        opening = self.text[error.doc.rfind("\n", 0, error.pos) + 1 : error.pos].lstrip()
        if error.msg.startswith("Expecting property name") and opening in ("{", "[{") and '"' not in rest[:1]:
            return None  # a brace in a log line
        return f"not valid JSON: {error.msg} at line {error.lineno}"

    def _after(self, end: int, i: int) -> int:
        """The line to go on with after JSON that ended at a place; closing brackets go with it."""
        closing = re.compile(r"\s*\](?:[ \t]*)").match(self.text, end)
        return max(i, self._line_of(max(closing.end() if closing else end, 1) - 1)) + 1

    def _line_of(self, place: int) -> int:
        return bisect.bisect_right(self.starts, place) - 1

    def _records(self, value: Any, line: int, depth: int = 0) -> None:
        """Every record in a JSON value: the value itself, or what a wrapper holds."""
        if isinstance(value, list):
            for item in value:
                self._records(item, line, depth + 1)
            return
        if not isinstance(value, dict):
            return
        try:
            if {"n_prompt", "n_gen"} & value.keys() and ({"model_type", "model_filename"} & value.keys()):
                self.found.take("json", [from_fields(value, line)])
                return
            if which := log_clocks.kind(value):
                self.found.take(which, log_clocks.rows(value, line))
                return
        except NotARow as error:
            self.found.skipped.append(Skipped(line, str(error)))
            return
        if log_clocks.is_chunk(value):
            self.found.other_lines += 1
            return
        before = len(self.found.rows) + len(self.found.skipped)
        if depth < 5:
            for item in value.values():
                if isinstance(item, (list, dict)):
                    self._records(item, line, depth + 1)
        if depth == 0 and len(self.found.rows) + len(self.found.skipped) == before:
            keys = ", ".join(list(value)[:6])
            self.found.skipped.append(Skipped(line, f"a JSON object that is no test of llama-bench and no answer of llama-server, Ollama or LM Studio; its keys: {keys[:120]}"))

    def _sealed(self) -> list[Row]:
        """Rows with what stands around their table: the devices above it, the build below it, the columns of the whole of it."""
        def place(row: Row) -> tuple:
            return (row.sitting.part, row.sitting.build, row.sitting.cpu, row.sitting.gpus)

        foreign: dict[tuple, list[str]] = {}
        for row in self.found.rows:
            known = foreign.setdefault(place(row), [])
            known += [name for name in row.sitting.foreign if name not in known]
        done = []
        for row in self.found.rows:
            s = row.sitting
            around = (tuple(foreign[place(row)]), s.gpus or self.gpus.get(s.part, ()), s.build or self.builds.get(s.part))
            if around != (s.foreign, s.gpus, s.build):
                row = replace(row, sitting=replace(s, foreign=around[0], gpus=around[1], build=around[2]))
            done.append(row)
        return done
