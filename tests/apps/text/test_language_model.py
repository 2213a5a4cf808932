"""Language models of one's own and of transformers: prefixes, probabilities, caches, types; masked ones as potentials."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import gibbsite as gb
from gibbsite.apps.text.causal import Cached, Uncached
from gibbsite.distributions.incremental import incremental

T = gb.text
WORDS = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "the", "dog", "cat", "sat", "ran"]


def tokenizer(**special):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel({word: k for k, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]", **special)


def gpt(**options):
    """A GPT-2 of 2 layers with weights large enough for context to matter; its start, end and padding are one token."""
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 12, "initializer_range": 0.5}
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        return GPT2LMHeadModel(GPT2Config(vocab_size=len(WORDS), bos_token_id=2, eos_token_id=2, **sizes, **options))


@pytest.fixture
def lm(device):
    return T.from_hugging_face(gpt().to(device), tokenizer(eos_token="[SEP]", pad_token="[SEP]"), length=6)


def test_probabilities_are_the_models_own(lm, device):
    """Padding is the end's token: the model's own loss counts the first one only. The mutant counts all."""
    found = lm.encode(["the dog sat", "the cat", "the dog ran the cat ran"])
    x = found.x.to(device)
    for row, length in zip(x, [3, 2, 6]):
        ids = torch.cat((torch.tensor([2], device=device), row[: length + 1]))[None]
        count = ids.shape[1] - 1
        loss = lm.distribution.conditional.network(input_ids=ids, labels=ids).loss
        assert torch.allclose(lm.distribution(row), -loss * count, atol=1e-4)
    logits = lm.distribution.logits(x).log_softmax(-1).gather(-1, x[..., None]).sum((1, 2))
    assert not torch.allclose(logits[:2], lm.distribution(x)[:2], atol=1e-2)


@torch.no_grad()
def test_sums_to_one_after_any_prefix():
    lm = T.from_hugging_face(gpt(), tokenizer(eos_token="[SEP]"), length=4, dtype=torch.float64)
    for law in (lm(""), lm("the dog"), lm("the").truncated(top_k=3, temperature=0.7)):
        assert abs(float(law(gb.exact.states(law.space)).logsumexp(0))) < 1e-10


@torch.no_grad()
def test_the_cache_gives_what_reading_all_gives(lm, device):
    """Token by token, in float32, with every token read once: the network is told one token at a time."""
    steps, read = lm.distribution.conditional, torch.tensor([[10, 5, 6, 8], [10, 7, 7, 5]], device=device)
    assert isinstance(steps, Cached)
    told, state, found = [], steps.start(2), []
    hook = steps.network.register_forward_pre_hook(
        lambda module, args, options: told.append(options["input_ids"].shape[1]), with_kwargs=True
    )
    for token in read.split(1, 1):
        before = tuple(part.clone() for part in state.parts)
        logits, after = steps.step(token, state)
        assert all(torch.equal(a, b) for a, b in zip(before, state.parts))
        found.append(logits)
        state = after
    hook.remove()
    assert told == [1] * 4
    after = steps.step(read[:, :2], steps.start(2))[1]
    assert torch.allclose(steps.step(read[:, 2:], after)[0], steps(read)[:, 2:], atol=1e-4)
    assert torch.allclose(torch.cat(found, 1), steps(read), atol=1e-4)
    assert not torch.allclose(
        torch.cat([steps.step(t, steps.start(2))[0] for t in read.split(1, 1)], 1), steps(read), atol=0.1
    )


def test_what_keeps_other_states_is_asked_anew():
    """Attention to a window keeps less than all keys: the network is then read from the start each time."""
    from transformers import MistralConfig, MistralForCausalLM

    with torch.random.fork_rng():
        config = MistralConfig(
            vocab_size=len(WORDS), hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=1, max_position_embeddings=12, sliding_window=2, bos_token_id=1, eos_token_id=2,
        )  # fmt: skip
        network = MistralForCausalLM(config)
    lm = T.from_hugging_face(network, tokenizer(eos_token="[SEP]"))
    assert isinstance(lm.distribution.conditional, Uncached) and lm.distribution.space.length == 12
    steps, read = incremental(lm.distribution.conditional), torch.tensor([[10, 5, 6, 8, 9]])
    state = steps.step(read[:, :3], steps.start(1))[1]
    assert torch.allclose(steps.step(read[:, 3:], state)[0], steps(read)[:, 3:], atol=1e-5)
    assert lm("the dog").sample(3, seed=0).shape == (3, 10)


def test_half_weights_are_computed_in_float32_unless_asked():
    half = gpt().half()
    lm = T.from_hugging_face(half, tokenizer(eos_token="[SEP]"), length=6)
    x = lm.encode(["the dog sat"]).x
    assert next(half.parameters()).dtype == torch.float16 and lm.distribution(x).dtype == torch.float32
    again = T.from_hugging_face(half.float(), tokenizer(eos_token="[SEP]"), length=6)
    assert torch.equal(lm.distribution(x), again.distribution(x))
    kept = T.from_hugging_face(gpt().bfloat16(), tokenizer(eos_token="[SEP]"), length=6, dtype=torch.bfloat16)
    assert next(kept.parameters()).dtype == torch.bfloat16 and kept.distribution(x).dtype == torch.float32


def test_its_own_dropout_is_off(lm):
    x = lm.encode(["the dog sat"]).x.to(next(lm.parameters()).device)
    before = lm.distribution(x)
    lm.train()
    assert torch.equal(before, lm.distribution(x))


def test_learns_on(lm, device):
    """Maximum likelihood of three texts from where the network stands, its own dropout off: the nats fall."""
    x = lm.encode(["the dog sat", "the cat", "the dog ran the cat ran"]).x.to(device)
    objective = gb.learn.MaximumLikelihood(lm.distribution)
    before = float(objective(x, seed=torch.Generator()).loss.detach())
    optimiser = torch.optim.Adam(objective.parameters(), 0.01)
    gb.learn.fit(objective, x, optimiser=optimiser, steps=20, batch=3, seed=0, progress=False)
    assert float(objective(x, seed=torch.Generator()).loss.detach()) < before / 2


def test_mistakes_are_told():
    from transformers import BertConfig, BertForMaskedLM

    with pytest.raises(ValueError, match="length: expected at most 12, which the model can read, got 13"):
        T.from_hugging_face(gpt(), tokenizer(eos_token="[SEP]"), length=13)
    with pytest.raises(TypeError, match="tokenizer: expected the model's tokenizer or its folder, got none"):
        T.from_hugging_face(gpt())
    with pytest.raises(TypeError, match="model: expected a model of transformers or a folder that holds one, got int"):
        T.from_hugging_face(3, tokenizer())
    with pytest.raises(ValueError, match="at most the model's 9 tokens, got 10; is it this model's"):
        T.Pieces(tokenizer(eos_token="[SEP]"), vocabulary=9)
    with pytest.raises(ValueError, match="expected one with an eos_token, got none"):
        T.Pieces(tokenizer())
    with (
        pytest.raises(ValueError, match=r"change with what comes later; .*masked_from_hugging_face"),
        torch.random.fork_rng(),
    ):
        T.from_hugging_face(BertForMaskedLM(BertConfig(**BERT)), tokenizer(eos_token="[SEP]"))
    with pytest.raises(ValueError, match="expected one with a cls_token, a sep_token and a mask_token"):
        T.masked_from_hugging_face(gpt(), tokenizer(eos_token="[SEP]"))


def test_without_the_library_the_extra_is_named():
    code = "import sys; sys.modules['transformers'] = None; import gibbsite as gb; gb.text.from_hugging_face('x')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'gibbsite[text]'" in found.stderr


def test_nothing_of_the_library_is_imported_before_it_is_needed():
    code = "import sys, gibbsite; assert 'transformers' not in sys.modules and gibbsite.text.Words"
    subprocess.run([sys.executable, "-c", code], check=True)


BERT = {
    "vocab_size": len(WORDS), "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16,
    "max_position_embeddings": 10, "initializer_range": 0.5,
}  # fmt: skip


@pytest.fixture
def masked(device):
    from transformers import BertConfig, BertForMaskedLM

    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        network = BertForMaskedLM(BertConfig(**BERT)).to(device)
    special = {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]", "pad_token": "[PAD]"}
    return T.masked_from_hugging_face(network, tokenizer(**special), batch=4)


@torch.no_grad()
def test_pseudo_log_likelihood_by_hand(masked, device):
    """One masked copy a token, one at a time, without padding; the mutant doesn't mask."""
    texts = ["the dog sat", "cat", "the cat ran the dog ran sat ran"]
    x = masked.encode(texts).x.to(device)
    expected, unmasked = [], []
    for text in texts:
        ids = torch.tensor([1, *masked.tokeniser.encode(text), 2], device=device)
        total = [0.0, 0.0]
        for place in range(1, len(ids) - 1):
            for k, copy in enumerate((ids.index_fill(0, torch.tensor(place, device=device), 4), ids)):
                total[k] += float(masked.network(copy[None]).logits[0, place].log_softmax(0)[ids[place]])
        expected.append(total[0])
        unmasked.append(total[1])
    assert masked.space == gb.Tokens(8, 10, 2)
    assert torch.allclose(masked(x).cpu(), torch.tensor(expected), atol=1e-4)
    assert not torch.allclose(masked(x).cpu(), torch.tensor(unmasked), atol=0.1)
    assert masked(x[:, None]).shape == (3, 1)
    assert masked(torch.full((1, 8), 2, device=device)).tolist() == [0.0] and masked(x[:0]).shape == (0,)


def test_the_potential_has_a_gradient(masked, device):
    masked(masked.encode(["the dog"]).x.to(device)).sum().backward()
    assert float(masked.network.bert.embeddings.word_embeddings.weight.grad.abs().sum()) > 0


def test_prefixes_of_ones_own_networks():
    tokeniser = T.Words(["to", "be", "or"])
    lm = T.LanguageModel(tokeniser, gb.distributions.LSTM(tokeniser.vocabulary, 8, seed=0), length=5)
    assert lm("") is lm.distribution and lm("to be").space == gb.Tokens(3, 5, 0)
    assert lm.decode(torch.tensor([[2, 3, 0, 0, 0], [4, 4, 4, 4, 4]])) == ["to be", "or or or or or"]
    with pytest.raises(ValueError, match="prefix: expected fewer tokens than the space's length=5, got 5"):
        lm("to be or to be")
    assert isinstance(lm, nn.Module) and len(list(lm.parameters())) == 7


@torch.no_grad()
def test_a_real_model(data, device):
    """A Llama of 15M parameters with float16 weights: its own loss, and draws of what it would say."""
    folder = data / "models" / "stories15m"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here")
    from transformers import AutoModelForCausalLM

    lm = T.from_hugging_face(folder, length=32).to(device)
    text = "Once upon a time, there was a little girl named Lily."
    found = lm.encode([text, "Once"])
    network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).to(device)
    count = int(found.space.lengths(found.x)[0]) + 1
    ids = torch.cat((torch.tensor([1]), found.x[0, :count]))[None].to(device)
    assert torch.allclose(
        lm.distribution(found.x.to(device))[0], -network(input_ids=ids, labels=ids).loss * count, atol=1e-3
    )
    assert lm.decode(found.x)[0] == text
    law = lm("Once upon a time").truncated(top_k=1)
    greedy = network.generate(ids[:, :5], max_new_tokens=5, do_sample=False)[0, 5:]
    assert torch.equal(law.sample(1, seed=0)[0, :5], greedy)
