"""A llama.cpp context that reads and writes words: template, tokens, greedy choice. In the child process only."""

from __future__ import annotations

import ctypes

import llama_cpp

from bench.llama import Llama

# Cut to any number of tokens: the wait depends on how many there are, not on what they say.
PASSAGE = "The wait before the first word is prefill, and the stream after it is decode. "


class Talk(Llama):
    """A model one can say something to."""

    def __init__(self, job) -> None:
        super().__init__(job)
        self.vocab = llama_cpp.llama_model_get_vocab(self.model)
        self.words = llama_cpp.llama_vocab_type(self.vocab) != llama_cpp.LLAMA_VOCAB_TYPE_NONE
        self.sampler = llama_cpp.llama_sampler_init_greedy()

    def templated(self, text: str) -> str:
        """What the model's own chat template makes of one message; the text itself where it has none llama.cpp knows."""
        template = llama_cpp.llama_model_chat_template(self.model, None)
        if not template:
            return text
        message = (llama_cpp.llama_chat_message * 1)(llama_cpp.llama_chat_message(role=b"user", content=text.encode()))
        size = 4096 + 4 * len(text.encode())
        buffer = ctypes.create_string_buffer(size)
        n = llama_cpp.llama_chat_apply_template(template, message, 1, True, buffer, size)
        return buffer.raw[:n].decode() if 0 < n <= size else text

    def tokenised(self, text: str) -> ctypes.Array:
        """Token ids of a text, special ones read as such."""
        raw = text.encode()
        ids = (ctypes.c_int32 * (len(raw) + 8))()
        n = llama_cpp.llama_tokenize(self.vocab, raw, len(raw), ids, len(ids), True, True)
        if n <= 0:
            raise RuntimeError(f"could not tokenise {text[:40]!r}")
        return (ctypes.c_int32 * n)(*ids[:n])

    def piece(self, token: int) -> bytes:
        """A token's bytes, which may end within a letter; a dot where there is no vocabulary."""
        if not self.words:
            return "·".encode()
        buffer = ctypes.create_string_buffer(256)
        n = llama_cpp.llama_token_to_piece(self.vocab, token, buffer, len(buffer), 0, False)
        return buffer.raw[: max(0, n)]

    def choose(self) -> int:
        """The likeliest next token."""
        return llama_cpp.llama_sampler_sample(self.sampler, self.context, -1)

    def over(self, token: int) -> bool:
        """Whether a token ends the answer."""
        return self.words and llama_cpp.llama_vocab_is_eog(self.vocab, token)

    def prompt(self, n: int) -> str | ctypes.Array:
        """A prompt of about `n` tokens as text, or of exactly `n` ids where there is no vocabulary."""
        if not self.words:
            return self.tokens(n)
        ids = self.tokenised(PASSAGE * (n // 8 + 1))[:n]
        return b"".join(self.piece(i) for i in ids).decode(errors="ignore").strip()

    def first(self, prompt: str | ctypes.Array) -> tuple[int, int]:
        """From the prompt to the first token of the answer: (tokens of the prompt, the answer's first)."""
        ids = self.tokenised(prompt) if isinstance(prompt, str) else prompt
        if len(ids) > self.job.n_prompt:
            raise RuntimeError(f"the prompt is too long: {len(ids)} tokens, {self.job.n_prompt} fit")
        self.prefill(self.chunks(ids))
        return len(ids), self.choose()
