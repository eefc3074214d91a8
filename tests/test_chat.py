"""The wait before the first word and the stream after it, on a tiny model with and without words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import run_module
from test_bench import TINY, settings

pytest.importorskip("llama_cpp")

from bench import chat, commands, weights  # noqa: E402
from bench.options import OptionError  # noqa: E402
from macros import labdata, rows  # noqa: E402
from macros.latency import Latency  # noqa: E402

BYTES = [f"<0x{b:02X}>" for b in range(256)]


def spoken(writer, shape, quant) -> None:
    """A SentencePiece vocabulary: the bytes, the letters, and words that never occur in a prompt."""
    import gguf

    letters = [chr(c) for c in range(33, 127)] + ["▁"]
    tokens = ["<unk>", "<s>", "</s>", *BYTES, *letters]
    tokens += [f"▁zq{i}" for i in range(shape.n_vocab - len(tokens))]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * 256]
    kinds += [gguf.TokenType.NORMAL] * (len(tokens) - len(kinds))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(False)


@pytest.fixture(scope="module")
def mute(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "mute.gguf"
    weights.write(path, TINY, "Q4_K_M")
    return path


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model with words; its random weights make them nonsense."""
    path = tmp_path_factory.mktemp("model") / "speaking.gguf"
    keys = weights._add_keys

    def with_words(writer, shape, quant):
        class Quiet:
            """The writer, deaf to the one key that says there are no words."""

            def __getattr__(self, name):
                return (lambda *_: None) if name == "add_tokenizer_model" else getattr(writer, name)

        keys(Quiet(), shape, quant)
        spoken(writer, shape, quant)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights, "_add_keys", with_words)
        weights.write(path, TINY, "Q4_K_M")
    return path


def talk(path: Path, **more: object) -> list[dict]:
    events: list[dict] = []
    job = {"model_path": str(path), "n_prompt": 600, "n_gen": 12, "n_threads": 1, "n_gpu_layers": 0, **more}
    chat.run(chat.ChatJob(**job), events.append)
    return events


def test_a_talk_is_a_wait_and_a_stream(speaking: Path):
    events = talk(speaking, prompt="Why is that?")
    kinds = [e["event"] for e in events]
    assert kinds[:2] == ["loaded", "first"] and kinds[-2:] == ["stream", "done"]
    # One token a character, and the <s> the vocabulary adds before them.
    assert events[0]["words"] is True and events[1]["n_prompt"] == 1 + len("Why is that?")
    stream = events[-2]
    assert stream["n_tokens"] == kinds.count("token") <= 11
    assert events[1]["ns"] > 0 and (stream["ns"] > 0) == (stream["n_tokens"] > 0)


def test_without_a_vocabulary_there_are_dots(mute: Path):
    events = talk(mute, prompt="one two three")
    assert events[0]["words"] is False and events[1]["n_prompt"] == 3
    assert "".join(e["text"] for e in events if "text" in e) == "·" * 12


def test_prompts_of_many_lengths_take_turns(speaking: Path, mute: Path):
    events = [e for e in talk(mute, n_gen=1, reps=3, lengths=(4, 50)) if e["event"] == "first"]
    assert [e["n_prompt"] for e in events] == [4, 50, 50, 4, 4, 50]
    counted = [e["n_prompt"] for e in talk(speaking, n_gen=1, reps=1, lengths=(20, 100)) if e["event"] == "first"]
    assert counted == pytest.approx([20, 100], abs=2)  # as tokenised: a cut text may lose a space at its end


def test_too_long_a_prompt_is_one_line(speaking: Path):
    from bench.engine import EngineFailed

    with pytest.raises(EngineFailed, match="the prompt is too long: 701 tokens, 600 fit"):
        talk(speaking, prompt="x" * 700)


def test_chat_from_the_command_line(project: Path, speaking: Path, tmp_path: Path):
    done = run_module(project, "bench", "chat", env=settings(tmp_path, MODEL=speaking, THREADS=1, TOKENS=8, PROMPT="Hello?"))
    assert done.returncode == 0, done.stderr
    assert "> Hello?" in done.stdout
    assert re.search(r"\[time to first token: \d+\.\d\d s for 7 prompt tokens\]", done.stdout)
    assert re.search(r"Time to first token \d+\.\d\d s, then (\d[\d.]* tok/s over \d+ tokens|one token only)\.", done.stdout)


def test_waits_are_recorded_and_shown(project: Path, mute: Path, tmp_path: Path):
    done = run_module(project, "bench", "ttft", env=settings(tmp_path, MODEL=mute, THREADS=1, REPS=3, LENGTHS="64, 8"))
    assert done.returncode == 0, done.stderr
    lab = labdata.load(project / "labdata")
    (record,) = lab.latencies.values()
    assert [(w.n_prompt, len(w.samples_ns)) for w in record.waits] == [(8, 3), (64, 3)]
    assert record.words is False and record.model == "mute" and record.command == "make ttft LENGTHS=8,64 REPS=3 MODEL=mute.gguf THREADS=1"
    assert str(mute.parent) not in (project / "labdata/latency" / f"{record.id}.yml").read_text(encoding="utf-8")
    built = run_module(project, "mkdocs", "build", "-q")
    assert built.returncode == 0, built.stderr
    page = (project / "site/machines" / record.machine / "index.html").read_text(encoding="utf-8")
    assert "Time to first token" in page and "No prediction was written first" in page


def test_waits_are_averaged_from_their_samples():
    text = {"n_prompt": 100, "samples_ns": [1_000_000_000, 3_000_000_000]}
    host = {"os": "x"}
    instrument = {"name": "x", "version": None, "engine": "x", "engine_version": None}
    record = Latency.model_validate(
        {"schema": 1, "id": "x", "machine": "m", "model": "q", "started_at": "2026-11-30T00:00:00Z", "command": "x", "instrument": instrument,
         "host": host, "backend": "CPU", "n_threads": 1, "load_before": 0.0, "words": True, "waits": [text]}, strict=False)  # fmt: skip
    (row,) = rows.waits(record)
    assert (row["mean_s"], row["n"], row["rate_tok_s"]) == (2.0, 2, 50.0) and row["sigma_s"] == pytest.approx(2**0.5)


def test_lengths_are_whole_numbers():
    assert commands.whole_numbers({"LENGTHS": "512, 16,16"}, "LENGTHS", [1], 1, 1000) == [16, 512]
    with pytest.raises(OptionError, match="LENGTHS: not whole numbers from 1 to 1000, separated by commas; got '16;32'"):
        commands.whole_numbers({"LENGTHS": "16;32"}, "LENGTHS", [1], 1, 1000)


def test_a_latency_of_no_known_machine_is_named(project: Path):
    good = {"schema: 1\nid: w\nmachine: gone\nmodel: qwen3-8b-q4_k_m\nstarted_at: 2026-11-30 00:00:00+00:00\ncommand: make ttft\n"
            "instrument: {name: x, version: null, engine: x, engine_version: null}\nhost: {os: x}\nbackend: CPU\nn_threads: 1\n"
            "load_before: 0.0\nwords: true\nwaits: [{n_prompt: 8, samples_ns: [1]}]\n"}  # fmt: skip
    path = project / "labdata/latency/w.yml"
    path.parent.mkdir()
    path.write_text(good.pop(), encoding="utf-8")
    done = run_module(project, "bench", "check")
    assert done.returncode == 1 and done.stderr.startswith("error: labdata/latency/w.yml: machine: no such file; got 'gone'; known: ")
