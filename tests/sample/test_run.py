"""gb.run and gb.moments: shapes, warm-up, thinning, stopping, interruption, repeatability, errors."""

import warnings

import numpy as np
import pytest
import torch

import gibbsite as gb
from gibbsite.sample.kernel import Kernel

S = gb.sample


def lattice(side=4, coupling=0.2):
    model = gb.models.Ising.lattice(side, coupling=coupling)
    return model, model.space.uniform().sample(4, seed=0)


def test_what_a_run_prints_is_a_line():
    model = gb.models.Ising.lattice(4, coupling=0.3)
    x = model.space.uniform().sample(50, seed=0)
    for run in (
        gb.run(S.Gibbs(), model, x, steps=20, seed=1),
        S.trace(S.Gibbs(), model, x, statistic=lambda x: x.sum(-1), steps=20, seed=1),
    ):
        assert "\n" not in repr(run) and "steps=20" in repr(run) and "tensor" not in repr(run)


def test_shapes_cost_and_summary(device):
    model, x = lattice()
    model, x = model.to(device), x.to(device)
    chain = gb.run(S.MH(S.Informed()), model, x, steps=100, warmup=10, thin=5, seed=1)
    assert chain.samples.shape == (20, 4, 16) and chain.u.shape == (20, 4) and chain.steps == 100
    assert torch.allclose(chain.u, model(chain.samples).detach(), atol=1e-4)
    assert chain.cost.gradients == 100 and 0 < chain.accept_rate <= 1
    assert {"mean", "mcse_mean", "ess_bulk", "r_hat"} <= set(chain.summary().columns)
    assert list(chain.summary(lambda x: x.double().mean(-1)).index) == ["U", "statistic"]
    data = chain.to_arviz()
    assert data.posterior["x"].shape == (4, 20, 16) and data.sample_stats["lp"].shape == (4, 20)


def test_the_same_seed_gives_the_same_run_and_a_generator_is_continued():
    model, x = lattice()
    one, two = (gb.run(S.Gibbs(), model, x, steps=50, seed=3) for _ in range(2))
    assert torch.equal(one.samples, two.samples)
    g = torch.Generator().manual_seed(3)
    first, second = (gb.run(S.Gibbs(), model, x, steps=50, seed=g) for _ in range(2))
    assert torch.equal(first.samples, one.samples) and not torch.equal(second.samples, one.samples)


NORMAL = gb.distributions.Normal.standard(2)


def in_two_parts(kernel, model, x):
    """The samples of 40 steps, and of 15 and then 25 from the state that they left, with one generator."""
    g, h = (torch.Generator().manual_seed(3) for _ in range(2))
    whole = gb.run(kernel, model, x, steps=40, seed=g)
    first = gb.run(kernel, model, x, steps=15, seed=h)
    second = gb.run(kernel, model, first.state, steps=25, seed=h)
    return whole.samples, torch.cat((first.samples, second.samples))


def test_a_run_can_be_continued_from_its_state():
    model, x = lattice()
    for kernel in (S.Gibbs(), S.Tempering(S.Gibbs(), model.space.uniform(), (0.2, 1.0)), S.MH(S.Informed())):
        whole, halves = in_two_parts(kernel, model.double(), x)
        assert torch.equal(whole, halves)


@pytest.mark.parametrize(
    "kernel",
    [
        S.SGHMC(0.2),
        S.SGLD(S.polynomial_decay(0.5)),
        S.HMC(0.3, 3),
        S.NUTS(0.4),
        S.Tempering(S.MALA(0.5), NORMAL, (0.3, 1.0)),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_what_a_kernel_remembers_goes_on_too(kernel):
    """Momentum, step count and ladder: from the state the run goes on as if it had never stopped."""
    model, x = gb.distributions.Normal.diagonal(torch.zeros(2), torch.ones(2)), torch.zeros(3, 2)
    whole, halves = in_two_parts(kernel, model, x)
    assert torch.equal(whole, halves)


def test_stops_when_rhat_is_reached():
    model, x = lattice()
    chain = gb.run(S.GibbsSweep(), model, x, steps=20_000, seed=0, until_rhat=1.05)
    assert 50 <= len(chain.samples) < 20_000 and not chain.interrupted


class _Interrupted(Kernel):
    """Gibbs that is interrupted at its 30th step."""

    def __init__(self):
        self.count = 0

    def init(self, model, x):
        return S.Gibbs().init(model, x)

    def step(self, model, state, generator):
        self.count += 1
        if self.count == 30:
            raise KeyboardInterrupt
        return S.Gibbs().step(model, state, generator)


def test_interruption_keeps_what_was_drawn():
    model, x = lattice()
    chain = gb.run(_Interrupted(), model, x, steps=100, seed=0)
    assert chain.interrupted and len(chain.samples) == len(chain.u) == 29
    moments = gb.moments(_Interrupted(), model, x, steps=100, seed=0)
    assert moments.interrupted


def test_moments_are_those_of_the_stored_run():
    model, x = lattice()
    chain = gb.run(S.GibbsSweep(), model, x, steps=60, warmup=10, thin=3, seed=5)
    moments = gb.moments(S.GibbsSweep(), model, x, steps=60, warmup=10, thin=3, seed=5)
    values = chain.samples.double()
    assert torch.allclose(moments.mean, values.mean((0, 1)))
    assert torch.allclose(moments.stderr, values.mean(0).std(0) / 2)
    assert moments.rhat.shape == (16,)
    statistic = gb.moments(S.GibbsSweep(), model, x, steps=60, seed=5, statistic=lambda x: x.double().sum(-1))
    assert statistic.mean.shape == ()


def test_progress_bar_is_shown_on_demand(capsys):
    model, x = lattice()
    gb.run(S.Gibbs(), model, x, steps=5, seed=0, progress=True)
    assert "sampling" in capsys.readouterr().err
    gb.run(S.Gibbs(), model, x, steps=5, seed=0, progress=False)
    assert capsys.readouterr().err == ""


def test_mistakes_are_named():
    model, x = lattice()
    with pytest.raises(TypeError, match="a proposal is run as MH"):
        gb.run(S.Informed(), model, x, steps=1, seed=0)
    with pytest.raises(ValueError, match=r"expected \(chains, 16\) with at least 1 chain, got \(16,\)"):
        gb.run(S.Gibbs(), model, x[0], steps=1, seed=0)
    with pytest.raises(ValueError, match="steps >= 1"):
        gb.run(S.Gibbs(), model, x, steps=3, thin=4, seed=0)
    with pytest.raises(TypeError, match="seed: expected"):
        gb.run(S.Gibbs(), model, x, steps=3, seed=None)
    with pytest.raises(ValueError, match="at least 2 chains"):
        gb.moments(S.Gibbs(), model, x[:1], steps=3, seed=0)
    with pytest.raises(TypeError, match="Binary or Categorical"):
        gb.run(S.Gibbs(), lambda x: -x.square().sum(-1), torch.zeros(2, 3), steps=3, seed=0, space=gb.Real(3))


def test_scalar_events():
    model, x = gb.Potential(lambda x: -0.5 * x.square(), gb.Real(())), torch.zeros(4)
    chain = gb.run(S.MALA(1.0), model, x, steps=400, seed=0, until_rhat=1e-9)  # never that low, but computed
    assert chain.samples.shape == (400, 4) and list(chain.summary().index) == ["U", "x[0]"]
    assert gb.moments(S.MALA(1.0), model, x, steps=20, seed=0).mean.shape == ()


def test_clamped_sites_do_not_hold_up_convergence():
    model, x = lattice()
    held = torch.zeros(16, dtype=torch.bool)
    held[:5] = True
    x = torch.where(held, x[:1], x)
    chain = gb.run(S.GibbsSweep(clamp=held), model, x, steps=20_000, seed=0, until_rhat=1.05)
    assert len(chain.samples) < 20_000


def test_chains_that_never_move_have_not_converged():
    frozen, x = gb.Tempered(lattice(coupling=1.0)[0], 1000.0), torch.ones(4, 16, dtype=torch.int8)
    chain = gb.run(S.MH(S.RandomFlips()), frozen, x, steps=200, seed=0, until_rhat=1.5)
    assert len(chain.samples) == 200


def test_steps_are_integers_and_a_class_is_not_a_kernel():
    model, x = lattice()
    assert gb.run(S.Gibbs(), model, x, steps=np.int64(4), thin=np.int32(2), seed=np.int64(0)).samples.shape == (2, 4, 16)
    for wrong in ({"steps": 4.0}, {"steps": True}, {"steps": 4, "thin": 2.0}, {"steps": 4, "warmup": 1.0}):
        with pytest.raises(ValueError, match="expected a"):
            gb.run(S.Gibbs(), model, x, seed=0, **wrong)
    with pytest.raises(TypeError, match=r"write Gibbs\(\)"):
        gb.run(S.Gibbs, model, x, steps=4, seed=0)


def test_a_statistic_that_mixes_the_chains_is_refused():
    model, x = lattice()
    for statistic in (lambda x: x.double().mean(), lambda x: 1.0):
        with pytest.raises(ValueError, match=r"statistic: expected one value a chain, shape \(4, ...\)"):
            gb.moments(S.Gibbs(), model, x, steps=4, seed=0, statistic=statistic)


def test_arviz_does_not_take_many_chains_for_a_mistake():
    model, x = lattice()
    many = gb.run(S.Gibbs(), model, x.repeat(8, 1), steps=20, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert many.to_arviz().posterior["x"].shape == (32, 20, 16) and len(many.summary()) == 17
        assert bool(gb.diagnose.ess(many.u) > 0) and bool(gb.diagnose.rhat(many.u) > 0)
