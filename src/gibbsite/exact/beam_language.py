"""Language models as beam search asks them: what each label costs after a prefix, and the prefix after it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from ..distributions import Autoregressive, NGram, Stepwise
from ..model import device_of

Scorer = Callable[[list[tuple[int, ...]]], Float[Tensor, "prefixes vocabulary"]]
"""log p(next label | prefix) of each prefix and label; the blank's column is that of the end."""

_SMALL = 2**20  # steps of an n-gram model that are taken before the search: 16 MiB


class Language(ABC):
    """States stand for prefixes."""

    @abstractmethod
    def initial(self) -> Int[np.ndarray, " 1"]:
        """The state of the empty prefix."""

    @abstractmethod
    def costs(self, state: Int[np.ndarray, " n"], tokens: Int[np.ndarray, " m"]) -> Shaped[np.ndarray, "n m"]:
        """log p(token | state) of all pairs."""

    @abstractmethod
    def after(self, state: Int[np.ndarray, " n"], token: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The states after one token more."""


@final
class _Silent(Language):
    """No language model."""

    def initial(self) -> np.ndarray:
        return np.zeros(1, np.int64)

    def costs(self, state: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        return np.zeros((len(state), len(tokens)))

    def after(self, state: np.ndarray, token: np.ndarray) -> np.ndarray:
        return state


@final
class _Stepping(Language):
    """A distribution that is read token by token."""

    def __init__(self, model: Stepwise):
        self.model, self.device = model, device_of(model) if isinstance(model, nn.Module) else torch.device("cpu")

    def initial(self) -> np.ndarray:
        return self.model.initial(1).cpu().numpy()

    def costs(self, state: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        pairs = np.repeat(state, len(tokens)), np.tile(tokens, len(state))
        _, log_p = self.model.step(*(torch.from_numpy(part).to(self.device) for part in pairs))
        return log_p.double().cpu().numpy().reshape(len(state), len(tokens))

    def after(self, state: np.ndarray, token: np.ndarray) -> np.ndarray:
        found, _ = self.model.step(*(torch.from_numpy(part).to(self.device) for part in (state, token)))
        return found.cpu().numpy()


@final
class _Tabled(Language):
    """An n-gram model with few contexts, all its steps taken at once."""

    def __init__(self, model: NGram):
        device, vocabulary = device_of(model), model.space.vocabulary
        pairs = torch.cartesian_prod(torch.arange(model.states, device=device), torch.arange(vocabulary, device=device))
        after, log_p = model.step(*pairs.T.contiguous())
        self.start = model.initial(1).cpu().numpy()
        self.next = after.cpu().numpy().reshape(-1, vocabulary)
        self.log_p = log_p.double().cpu().numpy().reshape(-1, vocabulary)

    def initial(self) -> np.ndarray:
        return self.start

    def costs(self, state: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        return self.log_p[state[:, None], tokens]

    def after(self, state: np.ndarray, token: np.ndarray) -> np.ndarray:
        return self.next[state, token]


@final
class _Calling(Language):
    """A function of prefixes, asked once for each."""

    def __init__(self, function: Scorer, vocabulary: int):
        self.function, self.vocabulary = function, vocabulary
        self.prefixes: list[tuple[int, ...]] = [()]
        self.numbers: dict[tuple[int, ...], int] = {(): 0}
        self.rows: dict[int, np.ndarray] = {}

    def initial(self) -> np.ndarray:
        return np.zeros(1, np.int64)

    def costs(self, state: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        new = [number for number in state.tolist() if number not in self.rows]
        if new:
            found = self.function([self.prefixes[number] for number in new])
            if not isinstance(found, Tensor) or found.shape != (len(new), self.vocabulary):
                got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
                raise ValueError(
                    f"language_model(prefixes): expected a tensor of shape {(len(new), self.vocabulary)}, got {got}"
                )
            self.rows.update(zip(new, found.double().cpu().numpy()))
        return np.stack([self.rows[number][tokens] for number in state.tolist()])

    def after(self, state: np.ndarray, token: np.ndarray) -> np.ndarray:
        found = [(*self.prefixes[s], t) for s, t in zip(state.tolist(), token.tolist())]
        for prefix in found:
            if self.numbers.setdefault(prefix, len(self.prefixes)) == len(self.prefixes):
                self.prefixes.append(prefix)
        return np.array([self.numbers[prefix] for prefix in found], np.int64)


def fused(model: Stepwise | Autoregressive | Scorer | None, vocabulary: int, blank: int) -> Language:
    """The language model of a search, checked: its ids are the columns, and its eos the blank."""
    if model is None:
        return _Silent()
    if not isinstance(model, Stepwise | Autoregressive):
        if isinstance(model, type) or not callable(model):
            raise TypeError(f"language_model: expected an NGram or a function of prefixes, got {type(model).__name__}")
        return _Calling(model, vocabulary)
    space = model.space
    if space.vocabulary != vocabulary or space.eos != blank:
        raise ValueError(
            f"language_model: expected {vocabulary} ids, of which the blank, {blank}, is the eos; got {space.vocabulary} "
            f"with eos {space.eos}"
        )
    if isinstance(model, Autoregressive):
        return _Calling(lambda prefixes: _rows(model, prefixes), vocabulary)
    if isinstance(model, NGram) and model.states * vocabulary <= _SMALL:
        return _Tabled(model)
    return _Stepping(model)


def _rows(model: Autoregressive, prefixes: list[tuple[int, ...]]) -> Float[Tensor, "prefixes vocabulary"]:
    """log q(next token | prefix), all prefixes read at once: what pads the shorter ones comes after what is asked for."""
    lengths = torch.tensor([len(prefix) for prefix in prefixes])
    previous = torch.full((len(prefixes), int(lengths.max()) + 1), model.space.eos)
    previous[:, 0] = model.space.vocabulary
    for row, prefix in zip(previous, prefixes):
        row[1 : len(prefix) + 1] = torch.tensor(prefix)
    logits = model.conditional(previous.to(device_of(model)))
    return logits[torch.arange(len(prefixes)), lengths].double().log_softmax(-1)
