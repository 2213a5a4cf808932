"""Files of KenLM, binary ones too, scored by that library."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..model import Distribution
from ..space import Tokens
from .arpa import END, listed
from .stepwise import Stepwise


@final
class KenLM(Stepwise, Distribution):
    """log q(x) by KenLM, from an ARPA file or a binary one, with the interface of `NGram`.

    A binary file does not list its words: `words[i]` is that of id i, with </s> the eos. A word that the file lacks is
    unknown to it, <unk>; the probabilities of all words sum to 1 where `words` are those of the file, the unknown one among
    them. KenLM computes in float32. `read_arpa` reads text files without that library, and scores faster.

    References: Heafield (2011), KenLM: faster and smaller language model queries.
    """

    def __init__(self, path: str | Path, words: Sequence[str], length: int):
        super().__init__()
        words = list(words)
        if END not in words:
            raise ValueError(f"words: expected {END!r} among them, the end of sequences, got {len(words)} others")
        self.space = Tokens(length, len(words), words.index(END))
        self.words = listed(words, self.space)
        try:
            from kenlm import Model, State  # type: ignore
        except ImportError as error:
            raise ImportError("KenLM: its library scores; install it with: pip install 'gibbsite[kenlm]'") from error
        self.model, self.blank = Model(str(path)), State
        start = State()
        self.model.BeginSentenceWrite(start)
        self.states, self.numbers = [start], {start: 0}

    def forward(self, x: Int[Tensor, "*batch length"]) -> Float[Tensor, "*batch"]:
        batch = x.shape[:-1]
        x = self.space.check(x).reshape(-1, self.space.length)
        total, state = torch.zeros(len(x), dtype=torch.float64), self.initial(len(x))
        running = torch.arange(len(x))
        for token in x.cpu().unbind(1):
            state, log_p = self.step(state, token[running])
            total[running] += log_p
            going = token[running] != self.space.eos
            state, running = state[going], running[going]
        return total.reshape(batch).to(x.device)

    def initial(self, n: int) -> Int[Tensor, " n"]:
        return torch.zeros(n, dtype=torch.long)

    def step(self, state: Int[Tensor, " n"], token: Int[Tensor, " n"]) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"]]:
        rows = [self._read(s, t) for s, t in zip(state.tolist(), token.tolist())]
        after = torch.tensor([number for number, _ in rows], dtype=torch.long, device=state.device)
        return after, torch.tensor([log_p for _, log_p in rows], dtype=torch.float64, device=state.device)

    def _read(self, state: int, token: int) -> tuple[int, float]:
        after = self.blank()
        log_p = self.model.BaseScore(self.states[state], self.words[token], after) * math.log(10)
        number = self.numbers.setdefault(after, len(self.states))
        if number == len(self.states):
            self.states.append(after)
        return number, log_p

    def conditionals_at(self, state: Int[Tensor, " n"]) -> Float[Tensor, "n vocabulary"]:
        out, scores = self.blank(), self.model.BaseScore
        rows = [[scores(self.states[s], word, out) for word in self.words] for s in state.tolist()]
        return torch.tensor(rows, dtype=torch.float64, device=state.device).reshape(len(state), -1) * math.log(10)
