"""Penalties: values and gradients by definition, and that the power iteration's vectors survive a restart."""

import pytest
import torch

import gibbsite as gb

from .asymptotics import gradient, gradient_gap

L = gb.learn


def test_l1_and_block_l1_by_definition(double):
    w = torch.randn(3, 2, 3, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert gradient_gap(L.l1(w), (w * w.sign().detach()).sum(), [w]) < 1e-12
    assert L.l1([w, w]).item() == pytest.approx(2 * w.abs().sum().item())
    loops = sum(w[i, :, j].square().sum().sqrt() for i in range(3) for j in range(3))
    assert L.block_l1(w, (1, 3)).item() == pytest.approx(loops.item(), rel=1e-12)
    assert gradient_gap(L.block_l1(w, (1, 3)), loops, [w]) < 1e-12
    assert gradient_gap(L.block_l1(w, (0, 2)), loops, [w]) > 1e-2  # mutant: the other blocks


def test_a_block_of_zeros_has_a_finite_gradient(double):
    w = torch.zeros(2, 3, requires_grad=True)
    assert torch.equal(gradient(L.block_l1(w, (1,)), [w]), torch.zeros(6))
    assert not torch.autograd.grad(w.square().sum(1).sqrt().sum(), w)[0].isfinite().all()  # the mutant


def net():
    return gb.models.ResidualNet(gb.Binary((4, 4)), features=3, blocks=1, strided=1, seed=0).double()


def test_spectral_norm_against_singular_values(double):
    """Value and gradient u v^T by SVD, of convolutions and linear layers; the mutant is one step from the start."""
    module = net()
    weights = [w for w in module.parameters() if w.ndim > 1]
    exact = sum(torch.linalg.matrix_norm(w.flatten(1), 2) for w in weights)
    norm = L.SpectralNorm(module, iterations=2000, seed=0)
    assert norm().item() == pytest.approx(exact.item(), rel=1e-10)
    assert gradient_gap(norm(), exact, weights) < 1e-6
    assert gradient_gap(L.SpectralNorm(module, seed=0)(), exact, weights) > 1e-2


def test_spectral_norm_of_normalised_layers_is_that_of_the_weights_that_act(double):
    """Value and gradient by SVD; the mutant is the norm of the parts g and v, as which the layers' parameters lie."""
    data = gb.distributions.Normal.standard(3).sample(50, seed=0)
    module = L.weight_normalised(gb.models.MLP(gb.Real(3), (6, 5), seed=0), data)
    assert isinstance(module, gb.models.MLP)
    parts = list(module.parameters())
    acting = [layer.weight for layer in (*module.layers, module.readout)]
    exact = sum(torch.linalg.matrix_norm(w, 2) for w in acting)
    norm = L.SpectralNorm(module, iterations=2000, seed=0)
    assert norm().item() == pytest.approx(exact.item(), rel=1e-10)
    assert gradient_gap(norm(), exact, parts) < 1e-6
    mutant = sum(torch.linalg.matrix_norm(w, 2) for w in parts if w.ndim > 1)
    assert abs(mutant.item() - exact.item()) > 1 and gradient_gap(mutant, exact, parts) > 1e-2


def test_spectral_norm_goes_on_from_its_buffers_and_rests_in_evaluation(double):
    module = net()
    norm = L.SpectralNorm(module, seed=0)
    norm()
    kept = {key: value.clone() for key, value in norm.state_dict().items()}
    after = [norm().item() for _ in range(3)]
    other = L.SpectralNorm(module, seed=1)
    other.load_state_dict(kept)
    assert [other().item() for _ in range(3)] == after
    assert L.SpectralNorm(module, seed=1)().item() != after[0]
    norm.eval()
    assert norm().item() == norm().item()
    assert not list(norm.parameters())


def test_energy_magnitude_is_added_to_contrastive(double):
    model = gb.models.MLP(gb.Binary(4), (5,), seed=0).double()
    data = model.space.uniform().sample(6, seed=0)
    source = L.FromData(gb.sample.Gibbs(), steps=3)
    drawn = source.draw(model, data, seed=torch.Generator().manual_seed(2))
    report = L.Contrastive(model, L.Bounded(source, 0.3))(data, seed=torch.Generator().manual_seed(2))
    u, v = model(data), model(drawn.x)
    expected = v.mean() - u.mean() + 0.3 * (u.square().mean() + v.square().mean())
    parameters = list(model.parameters())
    assert gradient_gap(report.loss, expected, parameters) < 1e-12
    assert gradient_gap(report.loss, v.mean() - u.mean(), parameters) > 1e-2


def test_a_penalised_objective_has_the_space_of_the_one_in_it():
    """So that `fit` checks all data before the first step."""
    model = gb.models.Ising.lattice(2, coupling=0.1)
    objective = L.Penalised(L.PseudoLikelihood(model), lambda: L.l1(model.field), 0.1)
    data = model.space.uniform().sample(8, seed=0)
    data[7, 0] = 2
    with pytest.raises(ValueError, match=r"data: expected integers in \[0, 2\)"):
        L.fit(objective, data, optimiser=torch.optim.SGD(objective.parameters(), lr=0.1), steps=1, batch=1, seed=0)


def test_a_penalty_is_added_and_l1_finds_what_is_not_coupled(double):
    """A chain of 5 spins, 2,000 draws: pseudo-likelihood with l1 leaves every absent edge near 0, without it does not.

    With a weight above the largest gradient of the loss at the true zeros an absent coupling is held at 0 (Ravikumar et
    al., 2010); 5 n^-1/2 is beyond any of them but once in a million (each a mean of n terms, at most 2).
    """
    chain = [(i, i + 1) for i in range(4)]
    truth = gb.models.Ising.from_edges(5, torch.tensor(chain), 0.5)
    p, every, n = gb.exact.probabilities(truth), gb.exact.states(truth.space), 2000
    data = every[torch.multinomial(p, n, True, generator=torch.Generator().manual_seed(0))]
    edges = torch.combinations(torch.arange(5))
    absent = torch.tensor([tuple(e) not in chain for e in edges.tolist()])

    def learned(weight):
        model = gb.models.Ising.from_edges(5, edges, 0.0)
        couplings = next(model.pairs.parameters())
        objective = L.Penalised(L.PseudoLikelihood(model), lambda: L.l1(couplings), weight)
        optimiser = torch.optim.SGD([couplings], lr=0.02)
        for step in range(250):
            for group in optimiser.param_groups:
                group["lr"] = 0.05 * min(1, 20 / (1 + step))
            optimiser.zero_grad()
            objective(data, seed=0).loss.backward()
            optimiser.step()
        return couplings.detach()

    bound = 2 * 5 * n**-0.5  # the pseudo-likelihood's two ends of an edge
    sparse, dense = learned(bound), learned(0.0)
    step = 0.05 * 20 / 250 * 2 * bound  # a subgradient step around 0 is at most this
    assert float(sparse[absent].abs().max()) <= step < float(dense[absent].abs().max())
    assert float(sparse[~absent].min()) > 0.2
