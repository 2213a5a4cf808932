"""Conditionals that remember: what they give token by token is what they give at once, and sequences may part."""

import pytest
import torch
from torch import nn

import gibbsite as gb
from gibbsite.distributions.continued import Continued
from gibbsite.distributions.incremental import incremental
from gibbsite.distributions.kept import Kept
from gibbsite.distributions.truncation import Truncated

D = gb.distributions
V, START = 5, 5


class Plain(nn.Module):
    """A module that knows nothing of states: the mean of rows of a table, later ones at more weight."""

    def __init__(self):
        super().__init__()
        source = torch.Generator().manual_seed(0)
        self.table = nn.Parameter(torch.randn(V + 1, V, generator=source))

    def forward(self, previous):
        place = torch.arange(1, previous.shape[1] + 1, device=previous.device)[:, None]
        return (place * self.table[previous]).cumsum(1) / place


def network(**options):
    return D.Transformer(V, length=12, width=8, heads=2, seed=0, **options)


def wide(module):
    """The same module with larger weights, so that what it has read matters."""
    for parameter in module.parameters():
        parameter.data *= 5
    return module


def ngram():
    x = torch.randint(V, (40, 6), generator=torch.Generator().manual_seed(0))
    space = gb.Tokens(6, V, 0)
    ended = (x == 0).cumsum(1) > 0
    return D.NGramConditional(D.kneser_ney(torch.where(ended, 0, x), space, order=3))


CONDITIONALS = {
    "n-gram": ngram,
    "unigram": lambda: D.NGramTable(V, 0, torch.arange(5.0)),
    "trigram": lambda: D.NGramTable(V, 2, torch.randn(V + 1, V + 1, V, generator=torch.Generator().manual_seed(0))),
    "lstm": lambda: D.LSTM(V, 6, seed=0),
    "deep lstm": lambda: D.LSTM(V, 6, layers=3, dropout=0.5, seed=0),
    "transformer": lambda: wide(network()),
    "transformer, own readout": lambda: wide(network(layers=3, dropout=0.5, tied=False)),
    "plain": Plain,
    "truncated": lambda: Truncated(wide(network()), D.Truncation(0.7, top_k=3)),
    "continued": lambda: Continued(wide(network()), torch.tensor([2, 4, 1]), START),
    "continued plain": lambda: Continued(Plain(), torch.tensor([2]), START),
}
READ = torch.tensor([[START, 3, 1, 4, 1, 2, 0, 3], [START, 1, 1, 0, 2, 4, 4, 2], [START, 4, 0, 0, 1, 3, 2, 1]])
by_conditional = pytest.mark.parametrize("make", CONDITIONALS.values(), ids=CONDITIONALS.keys())


@by_conditional
@pytest.mark.parametrize("cuts", [[1] * 8, [3, 1, 4], [8]], ids=["one by one", "in pieces", "at once"])
def test_reading_on_gives_what_reading_all_gives(make, cuts, device, double):
    """To 1e-12 in float64; the mutant starts anew at each piece."""
    module = make().to(device, torch.float64)
    steps, read = incremental(module), READ.to(device)
    whole, found, state = module(read) if isinstance(module, Plain) else steps(read), [], steps.start(3)
    for piece in read.split(cuts, 1):
        logits, state = steps.step(piece, state)
        found.append(logits)
    assert torch.allclose(torch.cat(found, 1), whole, atol=1e-12, rtol=0)
    if len(cuts) > 1 and "NGramTable" not in repr(module):
        forgot = torch.cat([steps.step(piece, steps.start(3))[0] for piece in read.split(cuts, 1)], 1)
        assert not torch.allclose(forgot, whole, atol=1e-3, rtol=0)


@by_conditional
def test_nothing_depends_on_what_comes_later(make, device):
    steps, read = incremental(make().to(device)), READ.to(device)
    later = read.clone()
    later[:, 5:] = (later[:, 5:] + 1) % V
    assert torch.equal(steps(read)[:, :5], steps(later)[:, :5])


@by_conditional
@pytest.mark.parametrize("graph", [True, False])
def test_sequences_part_from_one_state(make, graph, device):
    """Two go on from the state of one; the state is afterwards what it was."""
    with torch.set_grad_enabled(graph):
        check_parting(make, device)


def check_parting(make, device):
    steps, read = incremental(make().to(device)), READ.to(device)
    state = steps.step(read[:, :4], steps.start(3))[1]
    both, token = state.rows(torch.tensor([2, 2, 0], device=device)), torch.tensor([[1], [4], [1]], device=device)
    expected = steps(torch.cat((read[[2, 2, 0], :4], token), 1))[:, -1:]
    assert torch.allclose(steps.step(token, both)[0], expected, atol=1e-5)
    for last in (1, 4, 1):  # from the one state three times, on for two tokens
        token = torch.full((3, 1), last, device=device)
        expected = steps(torch.cat((read[:, :4], token, token), 1))[:, -1:]
        assert torch.allclose(steps.step(token, steps.step(token, state)[1])[0], expected, atol=1e-5)


@pytest.mark.parametrize("name", ["deep lstm", "transformer, own readout"])
def test_components_are_dropped_by_a_source_only(name, device):
    module, read = CONDITIONALS[name]().to(device), READ.to(device)
    draw = lambda seed: module.step(read, module.start(3), torch.Generator(device).manual_seed(seed))[0]  # noqa: E731
    assert torch.equal(module(read), module(read)) and torch.equal(draw(0), draw(0))
    assert not torch.allclose(draw(0), module(read)) and not torch.allclose(draw(0), draw(1))
    q, x = D.Autoregressive(module, gb.Tokens(7, V, 0)), torch.tensor([[3, 1, 4, 1, 2, 0, 0]], device=device)
    assert not torch.allclose(q.log_q(x, source=torch.Generator(device).manual_seed(0)), q(x))


def test_what_is_dropped_leaves_the_mean(device):
    """1e6 components at rate 0.3: the mean is 1 within 5 standard errors, 5 sqrt(0.3 / 0.7 / 1e6); kept ones are 1 / 0.7."""
    from gibbsite.distributions.conditionals import dropped

    found = dropped(torch.ones(1000, 1000, device=device), 0.3, torch.Generator(device).manual_seed(0))
    assert abs(float(found.double().mean()) - 1) < 5 * (0.3 / 0.7 / 1e6) ** 0.5
    assert torch.allclose(found[found > 0], torch.tensor(1 / 0.7, device=device))


@torch.no_grad()
def test_room_that_is_taken_is_not_written_again():
    """One buffer grows as long as one sequence of states goes on; the mutant writes into room that is taken."""
    module = wide(network())
    first = module.step(READ[:, :4], module.start(3))[1]
    second = module.step(READ[:, 4:5], first)[1]
    third = module.step(READ[:, 5:6], second)[1]
    assert second.layers[0].data_ptr() == third.layers[0].data_ptr() and (second.places, third.places) == (5, 6)
    expected = module.step(READ[:, 6:7], third)[0]
    module.step((READ[:, 5:6] + 1) % V, second)
    assert torch.equal(module.step(READ[:, 6:7], third)[0], expected)
    module.step((READ[:, 5:6] + 1) % V, Kept(second.layers, second.places))
    assert not torch.allclose(module.step(READ[:, 6:7], third)[0], expected, atol=1e-3)


def test_attention_is_over_all_that_was_read(double):
    """One block by hand: softmax(q k / sqrt d) v over the places so far, then the rest of the block."""
    module = wide(D.Transformer(V, length=4, width=4, layers=1, heads=2, tied=False, seed=0))
    read, block = READ[:1, :4], module.blocks[0]
    x = module.tokens(read)[0] + module.places.weight[:4]
    q, k, v = block.ask(block.first(x)).view(4, 3, 2, 2).unbind(1)
    mixed = torch.zeros(4, 2, 2)
    for place in range(4):
        for head in range(2):
            weight = (k[: place + 1, head] @ q[place, head] / 2**0.5).softmax(0)
            mixed[place, head] = weight @ v[: place + 1, head]
    x = x + block.mix(mixed.flatten(1))
    x = x + block.narrow(nn.functional.gelu(block.widen(block.second(x))))
    assert torch.allclose(module(read)[0], module.readout(module.norm(x)), atol=1e-12)


def test_errors():
    with pytest.raises(ValueError, match="at most length=12 tokens, the start among them, got 13"):
        network()(torch.zeros(1, 13, dtype=torch.long))
    with pytest.raises(ValueError, match="width: expected a multiple of heads=3, got 8"):
        D.Transformer(V, 12, width=8, heads=3, seed=0)
    wrong = nn.Sequential(Plain(), nn.Flatten(1))
    with pytest.raises(ValueError, match=r"conditional: expected logits of shape \(3, 8, vocabulary\), got \(3, 40\)"):
        incremental(wrong)(READ)
