"""The layers of the default encoder against loops that are their definition, and what is dropped against its probability."""

import pytest
import torch
from scipy.stats import binom

from gibbsite.apps.tagging import layers
from gibbsite.apps.tagging.layers import BiLSTM, dropped, replaced
from gibbsite.apps.tagging.vocabulary import UNKNOWN
from gibbsite.apps.tagging.word_encoder import Characters, WordEncoder

LENGTHS = [5, 3, 1]
DRAWS = 100_000  # the mutant's frequency is then 7 standard deviations off, where 4.9 are refused


def source(seed=0, device="cpu"):
    return torch.Generator(device).manual_seed(seed)


def test_both_directions_read_each_sentence_within_its_length(device, monkeypatch):
    net = BiLSTM(4, 3, source=source()).double().to(device)
    x = torch.randn(3, 5, 4, generator=source(1), dtype=torch.float64).to(device)
    mask = torch.arange(5, device=device) < torch.tensor(LENGTHS, device=device)[:, None]

    def gap():
        found = net(x, mask)
        alone = [
            torch.cat((net.ahead(x[k, :n])[0], net.back(x[k, :n].flip(0))[0].flip(0)), -1) for k, n in enumerate(LENGTHS)
        ]
        return max((found[k, :n] - alone[k]).abs().max() for k, n in enumerate(LENGTHS))

    assert gap() < 1e-12
    monkeypatch.setattr(layers, "turned", lambda mask: torch.arange(4, -1, -1, device=mask.device).expand_as(mask))
    assert gap() > 1e-3, "the mutant: padding is read first on the way back"


def test_characters_are_maxima_over_the_windows_of_a_form(device):
    net = Characters(6, 4, 3, (2, 3), source=source()).double().to(device)
    spellings = torch.tensor([[2, 5, 6, 7, 3, 0, 0], [2, 4, 3, 0, 0, 0, 0], [2, 3, 0, 0, 0, 0, 0]], device=device)
    found = net(spellings)
    for row, length in enumerate((5, 3, 2)):
        x = net.embedding(spellings[row]) * (spellings[row] != 0)[:, None]
        expected = []
        for window, width in zip(net.windows, (2, 3)):
            last = max(length - width, 0)
            each = [(window.weight * x[p : p + width].T).sum((1, 2)) + window.bias for p in range(last + 1)]
            expected.append(torch.stack(each).relu().amax(0))
        assert torch.allclose(found[row], torch.cat(expected), atol=1e-12)
    assert torch.allclose(net(spellings[1:, :3]), found[1:], atol=1e-12)  # however much padding there is


def between(count, trials, p):
    """Whether a binomial count lies where it does but with probability 1e-6."""
    return binom.ppf(5e-7, trials, p) <= count <= binom.isf(5e-7, trials, p)


def test_what_is_dropped_is_dropped_with_its_probability_and_the_mean_stays(device):
    x = torch.ones(200, 3, 50, device=device)
    y = dropped(x, 0.3, source(0, device))
    assert torch.equal(y[:, 0], y[:, 2]) and dropped(x, 0.3, None) is x
    assert between(int((y[:, 0] == 0).sum()), 200 * 50, 0.3)
    assert not between(int((dropped(x, 0.4, source(0, device))[:, 0] == 0).sum()), 200 * 50, 0.3), "the mutant"
    assert torch.allclose(y[y != 0], torch.tensor(1 / 0.7, device=device))


def test_rare_words_are_read_as_unknown_more_often(device):
    sentences = [("often",) * 9, ("once",)]
    encoder = WordEncoder.of(sentences, word_dropout=0.5, source=source()).to(device)
    ids = torch.tensor([encoder.vocabulary.word("often"), encoder.vocabulary.word("once")], device=device).expand(DRAWS, 2)
    unknown = (replaced(ids, UNKNOWN, encoder.drop[ids], source(0, device)) == UNKNOWN).sum(0).tolist()
    for count, n in zip(unknown, (9, 1)):
        assert between(count, DRAWS, 0.5 / (0.5 + n))
        assert not between(count, DRAWS, 0.5 / (1.5 + n)), "the mutant: one more counted"
    assert torch.equal(replaced(ids, UNKNOWN, encoder.drop[ids], None), ids)


@pytest.mark.parametrize("layers", [1, 2])
def test_the_gradient_reaches_every_part(layers, device):
    encoder = WordEncoder.of([("a", "bb")], layers=layers, hidden=4, source=source()).to(device)
    batch = {name: x.to(device) for name, x in encoder.read([("a", "zz"), ("bb",)]).items()}
    encoder(batch, source=source(0, device)).square().sum().backward()
    assert all(p.grad is not None and bool((p.grad != 0).any()) for p in encoder.parameters())
