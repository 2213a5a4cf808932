"""`generate` of transformers, steered: candidates of the model, of which one is kept by an energy of whole texts."""

import copy
from collections.abc import Callable
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from ... import random
from ...check import function
from ...distributions import Truncation
from ...random import Seed, Source
from ...space import whole
from .choice import Best, Choice, Resampled
from .hugging_face import transformers


@final
class EnergyRerank:
    """What `model.generate(..., custom_generate=...)` calls: n continuations of each prompt, one of them kept by exp V."""

    def __init__(self, energy: Callable, choice: type[Choice], n: int, seed: Seed, tokenizer: Any, batch: int):
        self.energy, self.choice, self.n, self.seed = energy, choice, n, seed
        self.tokenizer, self.batch = tokenizer, batch

    @torch.no_grad()
    def __call__(
        self, model: Any, input_ids: Tensor, logits_processor: Any, stopping_criteria: Any, generation_config: Any,
        **model_kwargs: Any,
    ) -> Any:  # fmt: skip
        """The prompts with what was kept for each, padded as `generate` pads."""
        _check(model, generation_config)
        source = random.generator(self.seed, input_ids.device)
        config = copy.deepcopy(generation_config)
        config.do_sample, config.return_dict_in_generate = False, False  # _Draw draws, from `source`
        processors = _warped(logits_processor, generation_config)
        processors.append(_Draw(source))
        pad = 0 if config._pad_token_tensor is None else int(config._pad_token_tensor)
        kept = []
        for first in range(0, len(input_ids), self.batch):
            rows, choice, left = slice(first, first + self.batch), self.choice(), self.n
            while left:
                block = min(left, max(1, self.batch // len(input_ids[rows])))
                ids, options = _repeated(model, input_ids, model_kwargs, rows, block)
                x = model._sample(ids, processors, stopping_criteria, config, **options)
                v = self._potential(x).view(-1, block)
                x = functional.pad(x, (0, max(0, config.max_length - x.shape[1])), value=pad)
                choice.add(x.view(len(v), block, -1), v, source)
                left -= block
            if bool((choice.highest == -torch.inf).any()):
                raise ValueError(f"energy: it is -inf at each of n={self.n} continuations of a prompt; draw more")
            kept.append(choice.x)
        found = _cut(torch.cat(kept), input_ids.shape[1], pad, config._eos_token_tensor)
        if generation_config.return_dict_in_generate:
            return transformers().generation.GenerateDecoderOnlyOutput(sequences=found)
        return found

    def _potential(self, x: Int[Tensor, "n t"]) -> Float[Tensor, " n"]:
        """V of each sequence, checked."""
        if self.tokenizer is not None:
            given, form = self.tokenizer.batch_decode(x, skip_special_tokens=True), "texts"
        else:
            given, form = x, "token ids"
        try:
            found = torch.as_tensor(self.energy(given), device=x.device).detach()
        except (TypeError, AttributeError) as error:
            way_out = "" if self.tokenizer is not None else "; where it takes texts, pass tokenizer="
            raise TypeError(f"energy: expected a function of {len(x)} {form}, but it failed ({error}){way_out}") from error
        if found.shape != (len(x),):
            raise ValueError(f"energy: expected one number a sequence, shape ({len(x)},), got shape {tuple(found.shape)}")
        found = found.double()
        if bool(found.isnan().any() | (found == torch.inf).any()):
            bad = int((found.isnan() | (found == torch.inf)).nonzero()[0, 0])
            raise ValueError(f"energy: expected finite numbers or -inf, got {found[bad].item()} at {given[bad]!r}")
        return found


def energy_rerank(
    energy: Callable[..., Any], n: int = 64, seed: Seed = 0, *, best: bool = False, tokenizer: Any = None, batch: int = 64
) -> EnergyRerank:
    """For `generate` of transformers: of n continuations of each prompt x_i, with probability exp V(x_i) / sum_j exp V(x_j).

    `energy` is the log-potential V, higher where a text is more probable: a reward, or minus an energy E. It takes token ids
    (sequences, tokens), prompts and padding included, or with `tokenizer` a list of texts without special tokens, and gives
    one number each. The law is near q exp V / Z as far as n is large, where q is that from which `generate` would draw:
    temperature, top_k, top_p, eos, the longest length, copies a prompt and all other settings are its own. Without do_sample
    candidates are drawn all the same, cut by temperature, top_k and top_p alone. `best` keeps the highest V instead. `batch`
    sequences are drawn at a time. An int as seed gives the same each time; torch's global random state is not used.

    References: Deng et al. (2020), Residual energy-based models for text generation, algorithm 1.

    Example:
        reward = lambda texts: [float(text.count("dog")) for text in texts]
        ids = model.generate(
            **tokenizer("Once upon a time", return_tensors="pt"), max_new_tokens=30, do_sample=True, top_k=10,
            custom_generate=gb.text.energy_rerank(reward, n=64, seed=0, tokenizer=tokenizer),
        )
    """
    function(energy, "energy", "lambda ids: one number a sequence")
    random.generator(seed)
    return EnergyRerank(energy, Best if best else Resampled, whole(n, "n"), seed, tokenizer, whole(batch, "batch"))


class _Draw:
    """A logits processor that leaves one token, drawn from the law that came: the likeliest of the rest is then a draw."""

    def __init__(self, source: Source):
        self.source = source

    def __call__(self, input_ids: Tensor, scores: Float[Tensor, "n vocabulary"]) -> Float[Tensor, "n vocabulary"]:
        token = random.categorical(scores, self.source).to(scores.device)
        return torch.full_like(scores, -torch.inf).scatter(1, token[:, None], 0.0)


def _warped(processors: Any, config: Any) -> Any:
    """A copy of the processors, with temperature, top_k and top_p of the settings where `generate` has left them out."""
    found = transformers().LogitsProcessorList(processors)
    if not config.do_sample:
        cut = Truncation(config.temperature or 1.0, config.top_k or None, config.top_p)
        found.append(lambda input_ids, scores: cut(scores))
    return found


def _check(model: Any, config: Any) -> None:
    if model.config.is_encoder_decoder:
        raise ValueError("model: expected one that continues its prompt, got an encoder with a decoder")
    if (config.num_beams or 1) != 1:
        raise ValueError(f"num_beams: expected 1, for candidates are drawn, got {config.num_beams}")


def _repeated(model: Any, ids: Tensor, options: dict[str, Any], rows: slice, times: int) -> tuple[Tensor, dict[str, Any]]:
    """Some of the prompts, each `times` times, and what belongs to them; caches are copied, for they are written to."""
    batched = {name: value[rows] if isinstance(value, Tensor) and value.shape[:1] == ids.shape[:1] else value
               for name, value in options.items() if name != "past_key_values"}  # fmt: skip
    found, batched = model._expand_inputs_for_generation(expand_size=times, input_ids=ids[rows], **batched)
    if (cache := options.get("past_key_values")) is not None:
        cache = copy.deepcopy(cache)
        if cache.get_seq_length():
            cache.batch_select_indices(torch.arange(len(ids), device=ids.device)[rows])
            cache.batch_repeat_interleave(times)
        batched["past_key_values"] = cache
    return found, batched


def _cut(x: Int[Tensor, "n t"], prompt: int, pad: int, eos: Tensor | None) -> Int[Tensor, "n t"]:
    """x without the last columns that are padding in all rows; an eos stays, where it is the padding too."""
    continued = x[:, prompt:]
    place = torch.arange(1, continued.shape[1] + 1, device=x.device)
    length = torch.where(continued != pad, place, 0).amax(1)
    if eos is not None and bool((eos.to(x.device) == pad).any()):
        length = (length + 1).clamp(max=continued.shape[1])
    return x[:, : prompt + int(length.max())]
