"""Causal language models of the transformers library as distributions."""

from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ...check import instance
from ...distributions.incremental import Incremental, State, Tensors
from ...random import Source
from .hugging_face import loaded, longest, token
from .language_model import LanguageModel
from .pieces import Pieces


@final
class Cached(Incremental):
    """A causal network whose keys and values are kept, so that each token is read once. Its own dropout is off."""

    def __init__(self, network: nn.Module, vocabulary: int, first: int):
        super().__init__()
        self.network, self.vocabulary, self.first = network, vocabulary, first

    def start(self, n: int) -> State:
        return Tensors(())

    def step(
        self, tokens: Int[Tensor, "n t"], state: State, source: Source | None = None
    ) -> tuple[Float[Tensor, "n t vocabulary"], State]:
        found = _told(self.network, tokens.masked_fill(tokens == self.vocabulary, self.first), _cache(state))
        read = tuple(part for layer in found.past_key_values.layers for part in (layer.keys, layer.values))
        return found.logits, Tensors(read)


@final
class Uncached(nn.Module):
    """A causal network that keeps something other than keys and values of every token: asked anew each time."""

    def __init__(self, network: nn.Module, vocabulary: int, first: int):
        super().__init__()
        self.network, self.vocabulary, self.first = network, vocabulary, first

    def forward(self, previous: Int[Tensor, "n t"]) -> Float[Tensor, "n t vocabulary"]:
        tokens = previous.masked_fill(previous == self.vocabulary, self.first)
        return self.network.eval()(input_ids=tokens, use_cache=False).logits


def _told(network: nn.Module, tokens: Tensor, cache: Any) -> Any:
    if network.training:  # its dropout would draw from torch's global random state
        network.eval()
    return network(input_ids=tokens, past_key_values=cache, use_cache=True)


def _cache(state: State) -> Any:
    """The library's cache around the tensors of a state, which it does not change: it joins them to new ones."""
    from transformers.cache_utils import DynamicCache, DynamicLayer

    cache, parts = DynamicCache(), instance(state, Tensors, "state").parts
    for keys, values in zip(parts[::2], parts[1::2]):
        layer = DynamicLayer()
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
        cache.layers.append(layer)
    return cache


@torch.no_grad()
def conditional(network: nn.Module, first: int) -> Cached | Uncached:
    """The network as a conditional, with a cache where it keeps keys and values alone; an error if it is not causal."""
    from transformers.cache_utils import DynamicCache, DynamicLayer

    device = next(network.parameters()).device
    pairs = torch.tensor([[first, 0], [first, 1]], device=device)
    found = _told(network, pairs, None)
    if not torch.allclose(found.logits[0, 0], found.logits[1, 0], atol=1e-4):
        raise ValueError(
            f"model: expected one that reads from left to right, but logits of {type(network).__name__} change with what "
            "comes later; for a masked language model use gb.text.masked_from_hugging_face"
        )
    cache, vocabulary = getattr(found, "past_key_values", None), found.logits.shape[-1]
    plain = type(cache) is DynamicCache and all(type(layer) is DynamicLayer for layer in cache.layers)
    return (Cached if plain else Uncached)(network, vocabulary, first)


def from_hugging_face(
    model: Any, tokenizer: Any = None, *, length: int | None = None, dtype: torch.dtype = torch.float32
) -> LanguageModel:
    """A causal language model of transformers, and its tokenizer, as a law of texts of at most `length` tokens.

    Either may be a folder or a name on the hub. Texts begin after the model's bos token (its eos token where it has none)
    and end with its eos token; what stands for padding, eos or another, is never read. Weights of another type are computed
    in float32 unless `dtype` says otherwise. `length` is as much as the model can read where it is not given.

    References: Wolf et al. (2020), Transformers: state-of-the-art natural language processing.

    Example:
        lm = gb.text.from_hugging_face("folder/of/a/model", length=64)
        x = lm("Once upon a time").truncated(top_k=10).sample(4, seed=0)
        print(lm.decode(x))
    """
    network, tokenizer = loaded(model, tokenizer, "AutoModelForCausalLM", dtype)
    config = network.config.get_text_config()  # pyright: ignore
    eos = token("eos_token_id", tokenizer, config)
    first = token("bos_token_id", tokenizer, config)
    first = eos if first is None else first
    if eos is None or first is None:
        raise ValueError("tokenizer: expected one with an eos_token, got none; set tokenizer.eos_token")
    steps, length = conditional(network, first), longest(network, length, 0)
    return LanguageModel(Pieces(tokenizer, vocabulary=steps.vocabulary, eos=eos), steps, length=length)
