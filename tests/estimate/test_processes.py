"""Estimates by two processes are those of one: all weights count, every process has draws of its own, all hear the same.

What draws nothing must agree with one process to rounding; what draws is a z-test of 4.9 standard errors (1e-6).
"""

import json
import math
from dataclasses import asdict

import pytest
import torch

import gibbsite as gb
from gibbsite.estimate.ais import lower_estimate
from gibbsite.estimate.walk import Walk
from gibbsite.processes import Group
from gibbsite.sample.kernel import Cost

from ..learn.processes import together

E, S, M, D = gb.estimate, gb.sample, gb.models, gb.distributions
SIGMAS = 4.9


def ising():
    return M.Ising.lattice((3, 4), coupling=0.3, field=0.1).double()


def path():
    return gb.Geometric(ising().space.uniform(), ising())


def draws(model, n, seed=5):
    p = gb.exact.probabilities(model).detach()
    return gb.exact.states(model.space)[torch.multinomial(p, n, True, generator=torch.Generator().manual_seed(seed))]


def latent_weights(x, k, generator):
    """No draws: fixed latents, so that processes can only differ by rounding."""
    h = torch.linspace(-2, 2, k, dtype=torch.float64)[:, None]
    return -h.square() / 2 - (x[:, 0] - h).square() / 2


def still():
    """Estimators that draw nothing of their own."""
    model, x = ising(), draws(ising(), 101)
    data = torch.randn(31, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    z = gb.Estimate(1.0, 0.1, 0.5, 1.5, 10, 10)
    return {
        "reverse_ais": E.reverse_ais(path(), S.Gibbs(), [0.0, 1.0], x, seed=0),
        "bridge": E.bridge(model.space.uniform(), model, model.space.uniform().sample(77, seed=1), x),
        "log_likelihood": E.log_likelihood(model, x, z),
        "iwae": E.iwae(latent_weights, data, 9, seed=0),
        "integrate": E.integrate(D.Normal.standard(1), -9, 9),
    }


def tilt():
    """Bits that are one with probability sigmoid(0.25)."""
    return gb.Tilt(ising().space.uniform(), lambda x: 0.25 * x.sum(-1))


def drawn(seed=0):
    """Estimators that draw, with what they should say."""
    log_z = float(gb.exact.log_z(ising()))
    betas = E.linear(20)
    return {
        "ais": (gb.ais(path(), S.GibbsSweep(), betas, chains=401, seed=seed), log_z),
        "bracket": (gb.bracket(ising(), temperatures=100, chains=152, seed=seed), log_z),
        "importance": (gb.importance(tilt(), 4001, seed=seed), 12 * math.log((1 + math.exp(0.25)) / 2)),
        "smc": (E.smc(path(), S.GibbsSweep(), betas, particles=401, seed=seed).log_z, log_z),
        "smc, own betas": (E.smc(path(), S.GibbsSweep(), particles=401, share=0.8, seed=seed).log_z, log_z),
        "thermodynamic": (E.thermodynamic(path(), S.GibbsSweep(), E.linear(40), steps=20, chains=101, seed=seed), log_z),
    }


def write(rank, folder, name):
    found = still() if name == "still" else {key: value for key, (value, _) in drawn().items()}
    if name == "drawn":
        u = E.snis(tilt(), lambda x: x.sum(-1), 4001, seed=0)
        found["snis"] = gb.Estimate(float(u.mean), float(u.stderr), 0, 0, u.ess, u.n, u.cost, u.trusted, u.why)
    (folder / f"{rank}.json").write_text(json.dumps({key: asdict(value) for key, value in found.items()}))


def told(folder, name):
    together(write, 2, folder, name)
    first, second = (json.loads((folder / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second
    return first


def test_what_draws_nothing_is_what_one_process_says(tmp_path):
    found = told(tmp_path, "still")
    for name, one in still().items():
        for key, value in asdict(one).items():
            wanted = value if isinstance(value, str) else pytest.approx(value, rel=1e-9)
            assert (tuple(found[name][key]) if key == "cost" else found[name][key]) == wanted, (name, key)


def test_what_draws_covers_the_exact_answer_with_all_draws_counted(tmp_path):
    """Errors of two processes are those of one, but for chance: a standard deviation of n weights is known to sqrt(k / 4n),
    k their kurtosis, below 16 here; 4.9 of these, and as many of one process's own, bound the ratio."""
    found = told(tmp_path, "drawn")
    snis = found.pop("snis")
    assert abs(snis["value"] - 12 / (1 + math.exp(-0.25))) < SIGMAS * snis["stderr"] and snis["n"] == 4001
    for name, (one, exact) in drawn(1).items():
        two = found[name]
        assert abs(two["value"] - exact) < SIGMAS * two["stderr"] and two["n"] == one.n, name
        assert two["trusted"] == one.trusted and two["lower"] < exact < two["upper"], name
        assert tuple(two["cost"]) == pytest.approx(tuple(one.cost), rel=0.2), name
        assert abs(math.log(two["stderr"] / one.stderr)) < 2 * SIGMAS * (16 / (4 * one.n)) ** 0.5, name


def weigh(rank, folder, mutant):
    if mutant:
        Group.source = lambda self, common: common
    parts, gather = [], Group.gather
    Group.gather = lambda self, x: parts.append(x) or gather(self, x)
    model = D.NormalMixture(torch.tensor([0.3, 0.7]), torch.tensor([[-1.0, 0.0], [1.0, 0.5]]), 0.7)
    there = gb.Geometric(D.Normal.standard(2), gb.Product(model))
    z = gb.ais(there, S.MALA(0.6), [0.0, 0.3, 0.7, 1.0], chains=50 if mutant else 51, seed=0)
    (folder / f"{mutant}{rank}.json").write_text(json.dumps([parts[0].tolist(), asdict(z)]))


def test_all_weights_count_and_no_two_processes_draw_the_same(tmp_path):
    together(weigh, 2, tmp_path, "")
    (first, z), (second, other) = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    log_w = torch.tensor(first + second, dtype=torch.float64)
    one = lower_estimate(Walk(log_w, log_w, Cost()))
    assert z == other and [len(first), len(second)] == [26, 25] and len(set(first + second)) == 51
    assert (z["value"], z["stderr"], z["ess"], z["n"]) == (one.value, one.stderr, one.ess, one.n)
    together(weigh, 2, tmp_path, "one stream ")  # the mutant
    first, second = (json.loads((tmp_path / f"one stream {rank}.json").read_text())[0] for rank in range(2))
    assert set(first) & set(second)


def fail(rank):
    def potential(x):
        return torch.full(x.shape[:1], torch.nan if rank else 0.0)

    model = gb.Potential(potential, gb.Binary(4))
    message = "U.x.: expected finite values" if rank else "process 1: U.x.: expected finite values"
    for estimate in (
        lambda: gb.ais(gb.Geometric(model.space.uniform(), model), S.Gibbs(), [0, 1], chains=4, seed=0),
        lambda: gb.bracket(model, kernel=S.Gibbs(), temperatures=4, chains=4, seed=0),
        lambda: gb.importance(gb.Tilt(model.space.uniform(), model), 9, seed=0),
        lambda: E.smc(gb.Geometric(model.space.uniform(), model), S.Gibbs(), particles=9, seed=0),
        lambda: E.bridge(model.space.uniform(), model, torch.zeros(4, 4).byte(), torch.ones(4, 4).byte()),
        lambda: E.log_likelihood(model, torch.zeros(4, 4).byte(), gb.Estimate(0.0, 0.1, 0, 0, 9, 9)),
        lambda: E.thermodynamic(gb.Geometric(model.space.uniform(), model), S.Gibbs(), [0, 1], chains=4, seed=0),
    ):
        with pytest.raises((ValueError, RuntimeError), match=message):
            estimate()
    with pytest.raises(ValueError, match="chains: expected at least one for each of the 2 processes, got 1"):
        gb.ais(path(), S.Gibbs(), [0, 1], chains=1, seed=0)


def test_what_fails_in_one_process_fails_in_all():
    together(fail, 2)
