"""Reranking within `generate`: the law of what is returned, beside enumeration, and the settings that it keeps."""

import math
from itertools import product

import pytest
import torch

import gibbsite as gb
from gibbsite.apps.text.energy_rerank import _Draw
from tests.statistics import fits

rerank = gb.text.energy_rerank
EOS, PAD = 2, 0


@pytest.fixture(scope="module")
def llama(request):
    """A Llama of 6 tokens, with weights large enough for context to matter."""
    from transformers import LlamaConfig, LlamaForCausalLM

    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        config = LlamaConfig(
            vocab_size=6, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
            max_position_embeddings=64, bos_token_id=1, eos_token_id=EOS, pad_token_id=PAD, initializer_range=0.5,
        )  # fmt: skip
        model = LlamaForCausalLM(config).eval()
    return model.to(request.config.getoption("--device"))


def threes(ids):
    """A reward of threes, the first of which counts twice."""
    return 1.5 * (ids == 3).float().sum(1) + (ids[:, -1] == 4).float()


def law(model, prompt, n, temperature, top_k):
    """Each continuation of two tokens and its probability: q by reading all, then all sets of n candidates."""
    log_q = {}
    for first, second in product(range(6), repeat=2):
        ids = torch.tensor([[*prompt, first, PAD if first == EOS else second]], device=model.device)
        found = (model(input_ids=ids).logits[0, -3:-1].double() / temperature).cpu()
        least = found.topk(top_k).values[:, -1:]
        each = found.masked_fill(found < least, -math.inf).log_softmax(-1)
        log_q[tuple(ids[0, -2:].tolist())] = float(each[0, first] + (0.0 if first == EOS else each[1, second]))
    every = [pair for pair in log_q if log_q[pair] > -math.inf]
    log_q, v = torch.tensor([log_q[pair] for pair in every]), threes(torch.tensor([[*prompt, *pair] for pair in every]))
    found = torch.zeros(len(every))
    for places in product(range(len(every)), repeat=n):
        found.index_add_(0, torch.tensor(places), log_q[list(places)].sum().exp() * v[list(places)].softmax(0))
    return every, found


def counts(model, prompt, every, **options):
    rows = model.generate(
        torch.tensor([prompt] * 3000, device=model.device), max_new_tokens=2, temperature=0.7, top_k=4, **options
    )
    found = [tuple(row) for row in rows[:, len(prompt) :].tolist()]
    assert set(found) <= set(every)
    return torch.tensor([[found.count(pair) for pair in every]])


@torch.no_grad()
@pytest.mark.parametrize("do_sample", [True, False])
def test_the_law_is_that_of_the_enumeration(llama, do_sample):
    """Chi-square with a false alarm of 1e-6, candidates in blocks of 2 and 1; the mutant is the model without an energy."""
    every, exact = law(llama, [1, 5], 3, 0.7, 4)
    found = counts(llama, [1, 5], every, do_sample=do_sample, custom_generate=rerank(threes, n=3, seed=0, batch=6000))
    assert len(every) > 8 and abs(float(exact.sum()) - 1) < 1e-5 and fits(found, exact[None])
    plain = counts(llama, [1, 5], every, do_sample=do_sample, custom_generate=rerank(threes, n=1, seed=0, batch=3000))
    assert not fits(plain, exact[None])


@torch.no_grad()
def test_prompts_of_several_lengths_are_drawn_as_each_alone(llama):
    """Padding on the left with its mask: greedy cuts make the draws certain, and equal to `generate`'s own."""
    ids, mask = torch.tensor([[0, 0, 1, 5], [1, 3, 4, 5]]), torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])
    given = {"input_ids": ids.to(llama.device), "attention_mask": mask.to(llama.device), "max_new_tokens": 6}
    want = llama.generate(**given, do_sample=False)
    for batch in (1, 3, 64):
        found = llama.generate(**given, do_sample=True, top_k=1, custom_generate=rerank(threes, n=3, batch=batch))
        assert torch.equal(found, want)
    wrong = llama.generate(
        **{**given, "attention_mask": mask.new_ones(2, 4).to(llama.device)}, top_k=1, custom_generate=rerank(threes, n=3)
    )
    assert not torch.equal(wrong, want) and torch.equal(wrong[1], want[1, : wrong.shape[1]])  # the mutant reads padding


@torch.no_grad()
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize(
    "options",
    [{}, {"use_cache": False}, {"cache_implementation": "static"}, {"prefill_chunk_size": 2}, {"past_key_values": True}],
    ids=["usual", "none", "static", "chunks", "given"],
)
def test_caches(llama, options, batch):
    """Each block of candidates has a cache of its own; a cache that was given is read, and stays as it was."""
    from transformers import DynamicCache

    ids, cache = torch.tensor([[1, 3, 4, 5], [1, 4, 4, 3]], device=llama.device), DynamicCache(config=llama.config)
    if "past_key_values" in options:
        llama(input_ids=ids[:, :3], past_key_values=cache, use_cache=True)
        options = {"past_key_values": cache}
    want = llama.generate(ids, max_new_tokens=6, do_sample=False)
    kept = rerank(threes, n=3, batch=batch)
    found = llama.generate(ids, max_new_tokens=6, do_sample=True, top_k=1, custom_generate=kept, **options)
    assert torch.equal(found, want) and cache.get_seq_length() == (3 if "past_key_values" in options else 0)


@torch.no_grad()
def test_what_comes_back_is_as_of_generate(llama):
    """Seeds, copies a prompt, the dictionary, length, padding after eos, and the best of what was drawn."""
    prompt = torch.tensor([[1, 5], [1, 4]], device=llama.device)
    options = {"max_new_tokens": 8, "do_sample": True, "num_return_sequences": 3}
    found = llama.generate(prompt, **options, custom_generate=rerank(threes, n=5, seed=1))
    assert found.shape[0] == 6 and found.shape[1] <= 10 and found[:, :2].tolist() == prompt.repeat_interleave(3, 0).tolist()
    assert torch.equal(found, llama.generate(prompt, **options, custom_generate=rerank(threes, n=5, seed=1)))
    assert not torch.equal(found, llama.generate(prompt, **options, custom_generate=rerank(threes, n=5, seed=2)))
    told = llama.generate(prompt, **options, return_dict_in_generate=True, custom_generate=rerank(threes, n=5, seed=1))
    assert torch.equal(told.sequences, found)
    for row in found.tolist():
        assert EOS not in row or set(row[row.index(EOS) + 1 :]) <= {PAD}
    seen = []

    def count(ids):
        seen.append((ids == 3).sum(1))
        return seen[-1]

    kept = llama.generate(
        prompt[:1], do_sample=True, max_new_tokens=8, custom_generate=rerank(count, n=40, best=True, batch=7)
    )
    assert len(seen) == 6 and len(torch.cat(seen)) == 40
    assert int((kept == 3).sum()) == int(torch.cat(seen).max()) > int(torch.cat(seen).min())


@torch.no_grad()
def test_padding_that_is_the_end(llama):
    """Where padding is eos, one eos stays at the end of the longest."""
    prompt = torch.tensor([[1, 5]] * 20, device=llama.device)
    ended = llama.generate(
        prompt, max_new_tokens=6, do_sample=True, pad_token_id=EOS,
        custom_generate=rerank(lambda ids: torch.where(ids[:, 3:].eq(EOS).all(1), 0.0, -torch.inf), n=400),
    )  # fmt: skip
    assert ended.shape == (20, 4) and bool((ended[:, -1] == EOS).all())


def test_a_draw_leaves_one_token():
    draw = _Draw(torch.Generator().manual_seed(0))
    found = draw(torch.zeros(500, 1), torch.tensor([0.0, -torch.inf, 1.0]).expand(500, 3))
    assert found.exp().sum(1).tolist() == [1.0] * 500 and float(found[:, 1].max()) == -torch.inf
    assert 0 < int((found[:, 0] == 0).sum()) < 500


def test_mistakes_are_told(llama):
    prompt = torch.tensor([[1, 5]], device=llama.device)

    def run(energy, **options):
        llama.generate(prompt, max_new_tokens=2, custom_generate=rerank(energy, n=4, **options))

    with pytest.raises(ValueError, match="n: expected a positive integer, got 0"):
        rerank(threes, n=0)
    with pytest.raises(TypeError, match="energy: expected a function such as"):
        rerank(3.0)
    with pytest.raises(ValueError, match=r"energy: expected finite numbers or -inf, got nan at "):
        run(lambda ids: threes(ids) * math.nan)
    with pytest.raises(ValueError, match=r"energy: expected one number a sequence, shape \(4,\), got shape \(4, 4\)"):
        run(lambda ids: ids.float())
    with pytest.raises(TypeError, match=r"function of 4 token ids, but it failed .*; where it takes texts, pass tokenizer="):
        run(lambda texts: [text.count("dog") for text in texts])
    with pytest.raises(ValueError, match="energy: it is -inf at each of n=4 continuations of a prompt; draw more"):
        run(lambda ids: ids[:, 0] * -math.inf)
    with pytest.raises(ValueError, match="num_beams: expected 1, for candidates are drawn, got 2"):
        llama.generate(prompt, num_beams=2, max_new_tokens=2, custom_generate=rerank(threes, n=4))


@torch.no_grad()
def test_a_real_model(data, device):
    """A Llama of 15M parameters: of 16 continuations of each prompt, the one that names the most dogs is kept."""
    folder = data / "models" / "stories15m"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).to(device)
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left", pad_token="</s>")
    begun = ["Once upon a time, there was a dog", "Lily saw a"]
    seen = []

    def dogs(texts):
        seen.extend(texts)
        return [20.0 * text.count("dog") for text in texts]

    ids = model.generate(
        **tokenizer(begun, return_tensors="pt", padding=True).to(device), max_new_tokens=12, do_sample=True, top_k=20,
        custom_generate=rerank(dogs, n=16, seed=0, tokenizer=tokenizer),
    )  # fmt: skip
    texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
    assert len(seen) == 32 and [text in seen for text in texts] == [True, True]
    for text, start in zip(texts, begun, strict=True):
        assert text.startswith(start) and text.count("dog") == max(s.count("dog") for s in seen if s.startswith(start))
