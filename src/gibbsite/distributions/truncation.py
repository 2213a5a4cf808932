"""Laws of the next token made sharper or cut to its likely values, as conditionals of their own."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..check import instance, number
from ..random import Source
from ..space import whole
from .incremental import Incremental, State, incremental


@final
@dataclass(frozen=True)
class Truncation:
    """p(k) -> p(k)^(1 / temperature) over the tokens kept, in this order: temperature, then top_k, then top_p.

    `top_k` keeps the k likeliest tokens, `top_p` the fewest likeliest ones that have p together; what is as likely as the
    last one kept is kept too, so that the law does not hang on an order.

    References: Fan et al. (2018), Hierarchical neural story generation; Holtzman et al. (2020), The curious case of neural
        text degeneration.

    Example:
        >>> import torch, gibbsite as gb
        >>> gb.distributions.Truncation(top_k=2)(torch.tensor([0.0, 1.0, 2.0]))
        tensor([-inf, 1., 2.])
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self):
        number(self.temperature, "temperature", above=0)
        if self.top_k is not None:
            whole(self.top_k, "top_k")
        if self.top_p is not None:
            number(self.top_p, "top_p", above=0, most=1)

    def __call__(self, logits: Float[Tensor, "*batch vocabulary"]) -> Float[Tensor, "*batch vocabulary"]:
        """Logits of the law that is left: -inf for tokens that are not kept."""
        logits = logits / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            logits = _cut(logits, logits.topk(self.top_k).values[..., -1:])
        if self.top_p is not None and self.top_p < 1:
            ordered = logits.sort(-1, descending=True).values
            before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
            last = (before < self.top_p).sum(-1, keepdim=True) - 1
            logits = _cut(logits, ordered.gather(-1, last))
        return logits


def _cut(logits: Tensor, least: Tensor) -> Tensor:
    return logits.masked_fill(logits < least, -torch.inf)


@final
class Truncated(Incremental):
    """A conditional whose laws are truncated: what is drawn by it has the log-probability that it says."""

    def __init__(self, conditional: nn.Module, truncation: Truncation):
        super().__init__()
        self.conditional = instance(conditional, nn.Module, "conditional")
        self.truncation = instance(truncation, Truncation, "truncation", "; such as Truncation(top_k=10)")

    def start(self, n: int) -> State:
        return incremental(self.conditional).start(n)

    def step(
        self, tokens: Int[Tensor, "n t"], state: State, source: Source | None = None
    ) -> tuple[Float[Tensor, "n t vocabulary"], State]:
        logits, state = incremental(self.conditional).step(tokens, state, source)
        return self.truncation(logits), state
