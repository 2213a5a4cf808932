"""MMD and total variation against their definitions."""

import pytest
import torch

import gibbsite as gb


def test_mmd_is_its_definition_and_tells_laws_apart():
    x, y = gb.Binary(6).uniform().sample(5, seed=0), gb.Binary(6).uniform().sample(4, seed=1)

    def k(a, b):
        return torch.exp(-(a != b).double().mean())

    slow = (
        sum(k(a, b) for a in x for b in x) / 25
        + sum(k(a, b) for a in y for b in y) / 16
        - 2 * sum(k(a, b) for a in x for b in y) / 20
    )
    assert float(gb.diagnose.mmd(x, y)) == pytest.approx(float(slow), abs=1e-12)
    other = gb.distributions.Bernoulli(torch.full((20,), 1.0)).sample(300, seed=2)
    same = [gb.Binary(20).uniform().sample(300, seed=s) for s in (3, 4)]
    assert gb.diagnose.mmd(other, same[0]) > 10 * gb.diagnose.mmd(*same)
    with pytest.raises(ValueError, match="samples of one shape"):
        gb.diagnose.mmd(x, x[:, :3])


class Largest(torch.overrides.TorchFunctionMode):
    """The most entries that any tensor made inside had."""

    entries = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.entries = max(self.entries, made.numel())
        return made


def test_hamming_distances_hold_no_triple_of_state_state_and_site():
    x = torch.arange(30)[:, None] >= torch.arange(60)[None] / 2  # row n has 2 n + 1 ones
    with Largest() as largest:
        similar = gb.diagnose.hamming_similarity(x, x)
    apart = 2 * (torch.arange(30)[:, None] - torch.arange(30)).abs().double() / 60
    assert torch.allclose(similar, torch.exp(-apart), atol=1e-12) and largest.entries == 30 * 60
    with Largest() as largest:
        torch.exp(-(x[:, None] != x[None]).double().mean(-1))  # the mutant
    assert largest.entries == 30 * 30 * 60


def test_squared_exponential_on_real_states():
    x = torch.tensor([[0.0], [2.0]])
    assert gb.diagnose.squared_exponential(1.0)(x, x)[0, 1].item() == pytest.approx(torch.tensor(-2.0).exp().item())


def test_total_variation_of_exact_frequencies_is_zero():
    model = gb.Categorical(2, 3).uniform()
    every = gb.exact.states(model.space)
    assert float(gb.diagnose.total_variation(every, model)) == pytest.approx(0, abs=1e-12)
    assert float(gb.diagnose.total_variation(every[:1].expand(7, -1), model)) == pytest.approx(8 / 9)


def test_scalar_events():
    x, y = torch.tensor([0.0, 1.0]), torch.tensor([0.0])
    for similarity in (gb.diagnose.squared_exponential(1.0), gb.diagnose.hamming_similarity):
        assert float(gb.diagnose.mmd(x, y, similarity)) == pytest.approx(
            float(gb.diagnose.mmd(x[:, None], y[:, None], similarity))
        )


def test_real_samples_far_from_the_origin_keep_their_distances():
    """Multiples of 1/64 shift by 1e8 without rounding; |x|^2 + |y|^2 - 2 x.y, the mutant, would lose every digit."""
    g = torch.Generator().manual_seed(0)
    x, y = (torch.randint(0, 256, (n, 3), generator=g).double() / 64 for n in (60, 50))
    similarity = gb.diagnose.squared_exponential(1.0)
    assert torch.equal(similarity(x, y), similarity(x + 1e8, y + 1e8))
    assert gb.diagnose.mmd(x, y, similarity) == gb.diagnose.mmd(x + 1e8, y + 1e8, similarity)
    by_products = torch.cdist(x + 1e8, y + 1e8, compute_mode="use_mm_for_euclid_dist")
    assert not torch.allclose(torch.exp(-by_products.square() / 2), similarity(x, y), atol=0.1)


def test_an_empty_sample_has_no_frequencies():
    with pytest.raises(ValueError, match=r"x: expected a non-empty sample, got shape \(0, 3\)"):
        gb.diagnose.total_variation(torch.zeros(0, 3, dtype=torch.int8), gb.Binary(3).uniform())
