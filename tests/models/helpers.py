"""Small random models and the exact checks that every model's tests share."""

import torch

import gibbsite as gb


def draw(*shape, seed=0, scale=1.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def dense_ising(sites=5, seed=0):
    J = draw(sites, sites, seed=seed).triu(1)
    return gb.models.Ising(J + J.T, draw(sites, seed=seed + 1))


def dense_potts(sites=3, states=3, seed=0):
    J = draw(sites, states, sites, states, seed=seed)
    J = J + J.permute(2, 3, 0, 1)
    J = J * (1 - torch.eye(sites, dtype=J.dtype))[:, None, :, None]
    return gb.models.Potts(J, draw(sites, states, seed=seed + 1))


def sparse_potts(sites=4, states=3, seed=0):
    edges = torch.tensor([[1, 0], [2, 1], [2, 3]])  # not all written with the smaller site first
    return gb.models.Potts.from_edges(sites, states, edges, draw(3, states, states, seed=seed), draw(sites, states, seed=5))


def small_rbm(visible=4, hidden=3, seed=0):
    return gb.models.RBM.from_weights(draw(hidden, visible, seed=seed), draw(visible, seed=1), draw(hidden, seed=2))


def small_fhmm(length=3, factors=2, seed=0):
    model = gb.models.FHMM.random(length, factors, seed=seed).double()
    weight = draw(factors, seed=seed)
    start = torch.linspace(0.2, 0.6, factors, dtype=torch.float64)
    stay = torch.linspace(0.7, 0.95, factors, dtype=torch.float64)
    return gb.models.FHMM(model.observations, weight, 0.3, variance=0.5, start=start, stay=stay)


def assert_site_logits_exact(model, tolerance=1e-10):
    """The closed form against enumeration, all sites and a shuffled, repeated subset, at every state of the model."""
    x = gb.exact.states(model.space)
    u, closed = gb.site_logits(model, x)
    v, table = gb.site_logits(model, x, "enumerate")
    assert closed.dtype == torch.float64
    assert (u - v).abs().max() < tolerance
    assert (closed - table).abs().max() < tolerance
    sites = torch.randint(model.space.sites, (len(x), 3), generator=torch.Generator().manual_seed(0))
    for some in (sites, sites[:, :1]):
        part = gb.site_logits(model, x, sites=some)[1]
        assert part.shape == (*some.shape, model.space.states)
        assert (part - table.gather(1, some[..., None].expand(-1, -1, model.space.states))).abs().max() < tolerance


def stationarity_gap(kernel, model, clamp=None):
    """|pi K - pi|_1, with a clamp on every conditional law of the free sites; K must not leave the clamped slice."""
    p, K = gb.exact.probabilities(model), gb.exact.transition_matrix(kernel, model)
    assert (K.sum(1) - 1).abs().max() < 1e-10
    if clamp is None:
        return float((p @ K - p).abs().sum())
    held = gb.exact.states(model.space).flatten(1)[:, clamp.flatten()]
    same = (held[:, None] == held[None]).all(-1)
    assert float(K[~same].abs().sum()) == 0, "a clamped site moved"
    gap = 0.0
    for row in same.unique(dim=0):
        law = p[row] / p[row].sum()
        gap = max(gap, float((law @ K[row][:, row] - law).abs().sum()))
    return gap
