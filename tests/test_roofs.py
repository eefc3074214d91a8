"""Roofs that are probed: what others take of a machine does not become its roof where a second try helps, and is said where none does."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("numpy")

from bench import prepare, probe  # noqa: E402
from bench import host as hosts  # noqa: E402
from bench.host import Host  # noqa: E402
from macros import labdata  # noqa: E402
from macros.cards import Machine  # noqa: E402

HOST = Host(os="Debian", cpu="Some CPU", physical_cores=2, logical_cores=2, memory_bytes=8 * 2**30)


def result(value: float, unit: str, threads: int) -> probe.ProbeResult:
    return probe.ProbeResult(value, unit, [value], threads, "a stopwatch", "2", "blas")


@pytest.fixture
def probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A machine's file of probes that others disturbed: (shares of the cores they used, what each probe read in GB/s) -> file, lines said."""
    monkeypatch.setattr(labdata, "ROOT", tmp_path)

    def make(shares: list[float], reads: list[float], lab: labdata.Lab | None = None, **options) -> tuple[Machine, list[str]]:
        rates, told, said = iter(reads), iter(shares), []
        monkeypatch.setattr(probe, "read_bandwidth", lambda n: result(next(rates) * 1e9, "B/s", n))
        monkeypatch.setattr(probe, "matmul_flops", lambda n: result(100e9 * n, "FLOP/s", n))
        monkeypatch.setattr(hosts.Watch, "share", lambda _: next(told))
        machine = prepare.machine(lab or labdata.Lab(), HOST, "mine", False, said.append, **options)
        assert not list(rates) and not list(told)  # as often as expected, and no more
        return machine, said

    return make


def test_a_probe_that_nobody_disturbed_is_made_once(probed):
    machine, said = probed([0.02], [10.0, 20.0])  # one thread, then two
    assert machine.specs.memory_bandwidth.value == 20.0 and machine.specs.peak_compute.value == 200.0
    assert "2% of the cores in use by others meanwhile;" in machine.sources["probe-read"].note
    assert not machine.notes and len(said) == 1


def test_a_disturbed_probe_is_repeated_until_it_is_not_and_the_best_is_kept(probed):
    machine, said = probed([0.5, 0.04], [10.0, 12.0, 11.0, 20.0])
    assert machine.specs.memory_bandwidth.value == 20.0
    note = machine.sources["probe-read"].note
    assert "50%, 4% of the cores in use by others meanwhile, the best of 2 probes" in note and "1: 11.00, 2: 20.00" in note
    assert not machine.notes
    assert said[1:] == ["Others used 50% of the cores meanwhile: probing again, 2 of at most 3"]


def test_a_machine_that_stays_busy_says_so_in_its_file_and_at_every_later_bench(probed):
    machine, _ = probed([0.5, 0.6, 0.45], [10.0, 20.0, 9.0, 8.0, 7.0, 6.0])
    assert machine.specs.memory_bandwidth.value == 20.0  # the best, not the last
    assert machine.notes == ["Its roofs were probed on a busy machine, others on 45% of its cores: they may be too low."]
    assert labdata.parse(Machine, labdata.ROOT / "machines/mine.yml", "mine.yml") == machine
    again, said = probed([], [], labdata.Lab(machines={"mine": machine}))
    assert again == machine
    assert said == ["labdata/machines/mine.yml: specs: probed on a busy machine, perhaps too low; without the file the next bench probes anew"]


def test_quiet_waits_before_the_probe(probed, monkeypatch: pytest.MonkeyPatch):
    looks = iter([0.7, 0.3, 0.0])
    monkeypatch.setattr(hosts, "busy_share", lambda: next(looks))
    monkeypatch.setattr("time.sleep", lambda _: None)
    _, said = probed([0.0], [10.0, 20.0], quiet=True)
    assert said[1].startswith("Waiting for an idle machine: 70% of the cores in use") and not list(looks)
