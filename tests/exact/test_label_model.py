"""The graph of an n-gram model gives each label sequence the model's probability, and CTC-CRF's sums are over those."""

import pytest
import torch

import gibbsite as gb

D, G = gb.distributions, gb.exact
SPACE = gb.Tokens(5, 4, 0)


def corpus(n, seed=0, space=SPACE):
    logits = 1.5 * torch.randn(space.vocabulary + 1, space.vocabulary, generator=torch.Generator().manual_seed(1))
    return D.Autoregressive(D.NGramTable(space.vocabulary, 1, logits), space).sample(n, seed=seed)


def weights(graph, every, device):
    """log of the sum over the graph's paths that read each sequence, which ends at its first 0."""
    emissions = torch.where(torch.nn.functional.one_hot(every, SPACE.vocabulary).bool(), 0.0, -torch.inf)
    return G.forward(graph, emissions.double().to(device), SPACE.lengths(every).to(device)).cpu()


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_every_sequence_has_the_probability_that_the_model_gives_it(order, device):
    """All 121 sequences of at most four labels; the mutant backs off for 1e-3 too much."""
    model = D.kneser_ney(corpus(6), SPACE, order=order)
    every = G.states(SPACE)
    every = every[(every == 0).any(1)]
    assert len(every) == 121
    found = weights(G.label_model(model.to(device)), every, device)
    assert torch.allclose(found, model(every.to(device)).cpu(), atol=1e-12, rtol=0)
    if order > 1:
        model.log_backoff[model.log_backoff != 0] += 1e-3
        assert (weights(G.label_model(model), every, device) - found).abs().max() > 5e-4


def test_sums_over_lengths_are_those_of_the_model(device):
    """sum over sequences of n labels, by the graph and by enumeration; all lengths together sum to 1."""
    model = D.kneser_ney(corpus(30), SPACE, order=3)
    longest = 200
    flat = torch.zeros(longest, longest, SPACE.vocabulary, dtype=torch.float64, device=device)
    total = G.forward(G.label_model(model.to(device)), flat, torch.arange(longest, device=device)).cpu()
    every = G.states(SPACE)
    p = model.cpu()(every).exp()
    for n in range(5):
        held = (SPACE.lengths(every) == n) & (every == 0).any(1)
        assert float(total[n].exp()) == pytest.approx(float(p[held].sum()), rel=1e-12)
    assert float(total.exp().sum()) == pytest.approx(1, abs=1e-6)


def test_backing_off_on_an_arc_that_reads_nothing_is_another_law(device):
    """What the exact graph is for: with such arcs, a listed n-gram has a second path, of more than 1e-3 here."""
    model = D.kneser_ney(corpus(6), SPACE, order=2)
    state, word = model.key // 4, model.key % 4
    every = [(int(s), int(t), int(w), float(p)) for s, t, w, p in zip(state, model.target, word, model.log_p) if w]
    every += [(s, int(model.fallback[s]), G.EPSILON, float(model.log_backoff[s])) for s in range(1, model.states)]
    end = {int(s): float(p) for s, w, p in zip(state, word, model.log_p) if w == 0}
    loose = G.remove_epsilon(G.Graph.of(every, start=int(model.start), end=end))
    x = corpus(6)
    x = x[(x == 0).any(1)]
    assert (weights(loose.to(device), x, device) - model(x)).max() > 1e-3


def test_costs_are_as_stated(device):
    """States that can be reached, and an arc for each label of each."""
    model = D.kneser_ney(corpus(40), SPACE, order=3).to(device)
    graph = G.label_model(model)
    assert graph.states <= model.states and graph.arcs == 3 * graph.states
    assert graph.weight.device.type == device.type


def test_ctc_crf_over_a_label_model_sums_to_one(device):
    """Over all 40 label sequences of at most three labels, in three frames of random emissions."""
    graph = G.compose(G.ctc_topology(4), G.label_model(D.kneser_ney(corpus(20), SPACE, order=3).to(device)))
    every = G.states(gb.Tokens(4, 4, 0))
    every = every[(every == 0).any(1)]
    emissions = (
        torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(0)).double().to(device).expand(len(every), -1, -1)
    )
    lengths = torch.full((len(every),), 3, device=device)
    counts = gb.Tokens(4, 4, 0).lengths(every)
    loss = G.CTCCRF(graph).to(device)
    with pytest.warns(UserWarning, match="have no path"):
        p = (-loss(emissions, every[:, :3].to(device), lengths, counts.to(device))).exp()
    assert float(p.sum()) == pytest.approx(1, abs=1e-5)
