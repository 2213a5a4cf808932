"""Small conditionals of autoregressive distributions: a table, and a recurrent network."""

import math
from typing import cast, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils import skip_init

from .. import random
from ..check import floats, instance, number
from ..model import device_of, dtype_of
from ..random import Seed, Source
from ..space import whole
from .incremental import Incremental, State, Tensors


@final
class NGramTable(Incremental):
    """A table of logits for each of the last `history` tokens; before the first token stand starts.

    `logits` has history + 1 dimensions: (vocabulary + 1, ..., vocabulary + 1, vocabulary), the oldest token first. It is 0
    where it is not given.

    Example:
        >>> import torch, gibbsite as gb
        >>> bigram = gb.distributions.NGramTable(3)
        >>> bigram(torch.tensor([[3, 0, 2]])).shape
        torch.Size([1, 3, 3])
    """

    def __init__(self, vocabulary: int, history: int = 1, logits: Float[Tensor, "..."] | None = None):
        super().__init__()
        self.vocabulary, self.history = whole(vocabulary, "vocabulary", 2), whole(history, "history", 0)
        shape = (*[vocabulary + 1] * history, vocabulary)
        self.logits = nn.Parameter(torch.zeros(shape) if logits is None else floats(logits, "logits", shape).clone())

    def start(self, n: int) -> State:
        return Tensors((torch.full((n, max(self.history - 1, 0)), self.vocabulary, device=self.logits.device),))

    def step(
        self, tokens: Int[Tensor, "n t"], state: State, source: Source | None = None
    ) -> tuple[Float[Tensor, "n t vocabulary"], State]:
        if not self.history:
            return self.logits.expand(*tokens.shape, -1), state
        (past,) = instance(state, Tensors, "state").parts
        read = torch.cat((past, tokens), 1)
        return self.logits[tuple(read.unfold(1, self.history, 1).unbind(-1))], Tensors((read[:, tokens.shape[1] :],))


@final
class LSTM(Incremental):
    """A recurrent network of `layers` layers of `hidden` units each, with embeddings of that size.

    While learning, components of what each layer reads, and of what the last one gives, are dropped with probability
    `dropout`.

    References: Hochreiter and Schmidhuber (1997), Long short-term memory; Zaremba et al. (2014), Recurrent neural network
        regularization, for where components are dropped.
    """

    def __init__(self, vocabulary: int, hidden: int = 64, layers: int = 1, dropout: float = 0.0, *, seed: Seed):
        super().__init__()
        self.vocabulary, hidden = whole(vocabulary, "vocabulary", 2), whole(hidden, "hidden")
        self.dropout = number(dropout, "dropout", least=0, below=1)
        self.embedding = cast(nn.Embedding, skip_init(nn.Embedding, vocabulary + 1, hidden))
        made = [nn.LSTM(hidden, hidden, batch_first=True, device="meta") for _ in range(whole(layers, "layers"))]
        self.recurrent = nn.ModuleList([layer.to_empty(device="cpu") for layer in made])
        self.readout = cast(nn.Linear, skip_init(nn.Linear, hidden, vocabulary))
        source = random.generator(seed)
        self.embedding.weight.data = random.normal((vocabulary + 1, hidden), source, self.embedding.weight.dtype)
        for parameter in (*self.recurrent.parameters(), *self.readout.parameters()):
            parameter.data = (2 * random.uniform(parameter.shape, source, parameter.dtype) - 1) / math.sqrt(hidden)

    def start(self, n: int) -> State:
        shape = (n, len(self.recurrent), self.embedding.embedding_dim)
        zeros = torch.zeros(shape, dtype=dtype_of(self), device=device_of(self))
        return Tensors((zeros, zeros))

    def step(
        self, tokens: Int[Tensor, "n t"], state: State, source: Source | None = None
    ) -> tuple[Float[Tensor, "n t vocabulary"], State]:
        x, units, cells = self.embedding(tokens), [], []
        first = instance(state, Tensors, "state").parts
        for layer, h, c in zip(self.recurrent, first[0].unbind(1), first[1].unbind(1)):
            x, (h, c) = layer(dropped(x, self.dropout, source), (h[None].contiguous(), c[None].contiguous()))
            units.append(h[0])
            cells.append(c[0])
        last = Tensors((torch.stack(units, 1), torch.stack(cells, 1)))
        return self.readout(dropped(x, self.dropout, source)), last


def dropped(x: Float[Tensor, "*shape"], rate: float, source: Source | None) -> Float[Tensor, "*shape"]:
    """Components 0 with probability `rate`, the others divided by 1 - rate; x itself without a source.

    References: Srivastava et al. (2014), Dropout.
    """
    if source is None or not rate:
        return x
    return x * (random.uniform(x.shape, source, x.dtype).to(x.device) >= rate).to(x.dtype) / (1 - rate)
