"""How many tokens a second are drawn and scored, beside `generate` of transformers with the very same network?

Our `Transformer` and a GPT-2 of transformers have the same weights and give the same log-probabilities (checked before).
The peer draws by `generate(do_sample=True)` with its cache, and scores by a log-softmax of its logits at the tokens, without
a gradient. Our LSTM has as many layers of the same width; transformers has none, so its peer is that GPT-2. "gibbsite, its
network" is GPT-2 drawn from by us (`gb.text`). A step is a token that is kept: where texts end, those up to the end.
"""

import math
from collections.abc import Callable

import torch
from _harness import Contest, Contestant, Target, main
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

import gibbsite as gb
from gibbsite.apps.text.causal import conditional

LENGTH = 64
D = gb.distributions
logging.set_verbosity_error()


def ours(vocabulary: int, width: int, chance: float) -> D.Transformer:
    """A network of 4 layers after which a text ends with about that probability, whatever was read."""
    network = D.Transformer(vocabulary, LENGTH, width=width, layers=4, seed=0)
    with torch.no_grad():
        network.norm.weight[0], network.norm.bias[0] = 0.0, 3.0
        network.tokens.weight[0] = 0.0
        network.tokens.weight[0, 0] = math.log(vocabulary * chance / (1 - chance)) / 3
        network.tokens.weight[1:, 0] = 0.0
    return network


def theirs(network: D.Transformer, vocabulary: int, width: int) -> GPT2LMHeadModel:
    """The same network in transformers."""
    config = GPT2Config(
        vocab_size=vocabulary + 1, n_positions=LENGTH, n_embd=width, n_layer=4, n_head=4, activation_function="gelu",
        bos_token_id=vocabulary, eos_token_id=0, pad_token_id=0,
    )  # fmt: skip
    other = GPT2LMHeadModel(config).eval()
    weights = {"transformer.wte": network.tokens, "transformer.wpe": network.places, "transformer.ln_f": network.norm}
    for number, block in enumerate(network.blocks):
        names = {"ln_1": "first", "ln_2": "second", "attn.c_attn": "ask", "attn.c_proj": "mix", "mlp.c_fc": "widen",
                 "mlp.c_proj": "narrow"}  # fmt: skip
        weights |= {f"transformer.h.{number}.{name}": getattr(block, mine) for name, mine in names.items()}
    with torch.no_grad():
        for name, module in weights.items():
            turned = isinstance(module, torch.nn.Linear)  # its linear layers have their weights the other way round
            other.get_submodule(name).weight.copy_(module.weight.T if turned else module.weight)
            if getattr(module, "bias", None) is not None:
                other.get_submodule(name).bias.copy_(module.bias)
    return other


@torch.no_grad()
def score(other: GPT2LMHeadModel, vocabulary: int, x: Tensor, count: Tensor) -> Tensor:
    start = x.new_full((len(x), 1), vocabulary)
    logits = other(input_ids=torch.cat((start, x[:, :-1]), 1), use_cache=False).logits[..., :vocabulary]
    each = logits.log_softmax(-1).gather(-1, x[..., None])[..., 0]
    return torch.where(torch.arange(x.shape[1]) < count[:, None], each, 0).sum(1)


def pair(vocabulary: int, width: int, chance: float) -> tuple[list[D.Autoregressive], GPT2LMHeadModel]:
    """Our distributions (transformer, LSTM, its network) and the peer's model."""
    network = ours(vocabulary, width, chance)
    other, space = theirs(network, vocabulary, width), gb.Tokens(LENGTH, vocabulary, 0)
    recurrent = D.LSTM(vocabulary, width, 4, seed=0)
    with torch.no_grad():
        recurrent.readout.weight[0], recurrent.readout.bias[0] = 0.0, math.log(vocabulary * chance / (1 - chance))
    mine = [D.Autoregressive(part, space) for part in (network, recurrent)]
    x = mine[0].sample(8, seed=0)
    count = (space.lengths(x) + 1).clamp(max=LENGTH)
    with torch.no_grad():
        torch.testing.assert_close(mine[0](x), score(other, vocabulary, x, count), rtol=1e-4, atol=1e-3)
    same = conditional(theirs(network, vocabulary, width), vocabulary)
    return [*mine, D.Autoregressive(_Cut(same, vocabulary), space)], other


class _Cut(D.Incremental):
    """The network of transformers without the logit of its start."""

    def __init__(self, inner: D.Incremental, vocabulary: int):
        super().__init__()
        self.inner, self.vocabulary = inner, vocabulary

    def start(self, n: int):
        return self.inner.start(n)

    def step(self, tokens: Tensor, state, source=None):
        logits, state = self.inner.step(tokens, state, source)
        return logits[..., : self.vocabulary], state


def contest(title: str, steps: int, works: list[Callable[[], object]], note: str = "") -> Contest:
    names = ["gibbsite, transformer", "gibbsite, LSTM", "gibbsite, its network"]
    peer = Contestant("transformers, GPT-2", works[-1], steps)
    mine = [Contestant(name, work, steps) for name, work in zip(names, works[:-1])]
    return Contest(title, [*mine, peer], [Target(one.name, peer.name, 2) for one in mine[:2]], note=note)


def drawing(vocabulary: int, width: int, batch: int, chance: float) -> Contest:
    mine, other = pair(vocabulary, width, chance)
    start = torch.full((batch, 1), vocabulary)

    def generate() -> Tensor:
        return other.generate(start, attention_mask=torch.ones_like(start), do_sample=True, top_k=0, max_new_tokens=LENGTH)

    kept = batch * (LENGTH if chance < 0.01 else (1 - (1 - chance) ** LENGTH) / chance)
    ends = "none of which ends" if chance < 0.01 else f"a text ends with probability {chance} a token"
    title = f"Drawing {batch} texts of {LENGTH} tokens, {ends}; {vocabulary} tokens known, width {width}"
    return contest(title, round(kept), [*(lambda q=q: q.sample(batch, seed=0) for q in mine), generate])


def scoring(vocabulary: int, width: int, batch: int, chance: float) -> Contest:
    mine, other = pair(vocabulary, width, chance)
    x = mine[0].sample(batch, seed=1)
    count = (mine[0].space.lengths(x) + 1).clamp(max=LENGTH)
    short = x[:, : int(count.max())]  # the peer reads no more than the longest text

    @torch.no_grad()
    def say(q: D.Autoregressive) -> Tensor:
        return q(x)

    about = "of full length" if chance < 0.01 else f"of {float(count.float().mean()):.0f} tokens on average"
    title = f"Scoring {batch} texts {about}; {vocabulary} tokens known, width {width}"
    works = [*(lambda q=q: say(q) for q in mine[:2]), lambda: score(other, vocabulary, short, count)]
    return contest(title, int(count.sum()), works)


def contests() -> list[Contest]:
    never = 1e-9
    return [
        drawing(5_000, 128, 16, never),
        drawing(10_000, 256, 32, never),
        drawing(10_000, 256, 32, 0.04),
        scoring(5_000, 128, 16, never),
        scoring(10_000, 256, 32, never),
        scoring(10_000, 256, 32, 0.04),
    ]


if __name__ == "__main__":
    main(__file__, contests)
