"""ESS, R-hat and MCSE where their values are known; autocorrelation of a known process."""

import pytest
import torch

import gibbsite as gb


def _ar1(rho, draws=20_000, chains=4):
    noise = torch.randn(draws, chains, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = torch.empty_like(noise)
    x[0] = noise[0]
    for t in range(1, draws):
        x[t] = rho * x[t - 1] + (1 - rho**2) ** 0.5 * noise[t]
    return x


def test_ess_and_autocorrelation_of_an_ar1_process():
    x = _ar1(0.8)
    expected = x.numel() * (1 - 0.8) / (1 + 0.8)
    assert float(gb.diagnose.ess(x)) == pytest.approx(expected, rel=0.15)
    rho = gb.diagnose.autocorrelation(x, 3)
    # the standard error of an autocorrelation from 80,000 draws of this process is below 0.008
    assert rho.tolist() == pytest.approx([1, 0.8, 0.64, 0.512], abs=5 * 0.008)
    assert float(gb.diagnose.rhat(x)) < 1.01
    assert float(gb.diagnose.mcse(x)) == pytest.approx(float(x.std()) / expected**0.5, rel=0.15)


def test_rhat_sees_chains_that_disagree():
    x = _ar1(0.5, 1000) + 3 * torch.arange(4.0)
    assert float(gb.diagnose.rhat(x)) > 1.5


def test_shapes_and_what_never_moves():
    x = torch.randn(50, 4, 2, 3, generator=torch.Generator().manual_seed(0))
    x[..., 0, 0] = 1.0
    assert gb.diagnose.ess(x).shape == (2, 3)
    assert gb.diagnose.ess(x)[0, 0].isnan() and not gb.diagnose.ess(x)[0, 1].isnan()
    with pytest.raises(ValueError, match="draws, chains"):
        gb.diagnose.rhat(torch.zeros(5))


def test_hamming_to_random_is_one_fixed_state_a_seed():
    x = torch.zeros(5, 2, 30, dtype=torch.int8)
    d = gb.diagnose.hamming_to_random(x, seed=3)
    assert d.shape == (5, 2) and (d == d[0, 0]).all()
    assert len({int(gb.diagnose.hamming_to_random(x, seed=s)[0, 0]) for s in range(20)}) > 1
    assert torch.equal(30 - d, gb.diagnose.hamming_to_random(1 - x, seed=3))
