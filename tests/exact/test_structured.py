"""What every structure does alike: batches of any shape, of no rows too; half types; no gradients; any device."""

import pytest
import torch

import gibbsite as gb

E = gb.exact
T = 4


def chain(draw, batch, lengths):
    return E.LinearChain(draw(*batch, T, 3), draw(3, 3), mask=torch.arange(T, device=lengths.device) < lengths[..., None])


def segments(draw, batch, lengths):
    return E.SemiMarkov(draw(*batch, T, 2, 2), draw(2, 2), lengths=lengths)


def tree(draw, batch, lengths):
    return E.TreeCRF(draw(*batch, T, T, 2), lengths=lengths)


def dependencies(draw, batch, lengths):
    return E.DependencyCRF(draw(*batch, T, T), lengths=lengths)


def make(kind, batch, *, device="cpu", dtype=torch.float64, seed=0):
    g = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(shape, generator=g, dtype=torch.float64).to(device, dtype)

    return kind(draw, batch, torch.randint(T + 1, batch, generator=g).to(device))


every = pytest.mark.parametrize("kind", [chain, segments, tree, dependencies], ids=lambda kind: kind.__name__)


@every
@pytest.mark.parametrize("batch", [(), (0,), (3,), (2, 3)], ids=str)
def test_batches_of_any_shape(kind, batch, device):
    law = make(kind, batch, device=device)
    event = law.space.shape
    for n in (0, 2):
        x = law.sample(n, seed=0)
        assert x.shape == (n, *batch, *event) and x.device.type == device.type
        assert law(x).shape == (n, *batch) and bool(law(x).isfinite().all())
    assert law.mode().shape == (*batch, *event) and law.n_best(3).log_prob.shape == (3, *batch)
    for each in (law.log_partition(), law.entropy(), law.kl(law), law(law.mode())):
        assert each.shape == batch and each.device.type == device.type
    assert law.marginals().shape[: len(batch)] == batch


@every
def test_rows_are_laws_of_their_own(kind, device):
    """A row gives the same alone as in its batch: nothing leaks between rows, whatever their lengths."""
    law = make(kind, (5,), device=device)
    first = {name: value for name, value in law.named_buffers() if not name.startswith("_") and value.shape[:1] == (5,)}
    shared = {name: value for name, value in law.named_buffers() if not name.startswith("_") and name not in first}
    for row in range(5):
        alone = type(law)(**{name: value[row] for name, value in first.items()}, **shared)
        assert torch.allclose(alone.log_partition(), law.log_partition()[row], atol=1e-12)
        assert torch.allclose(alone.marginals(), law.marginals()[row], atol=1e-12)
        assert torch.equal(alone.mode(), law.mode()[row])


@every
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_types_are_computed_in_single(kind, half, device):
    law = make(kind, (6,), device=device, dtype=half)
    exact = make(kind, (6,), device=device, dtype=half).double()
    assert law.log_partition().dtype == law.marginals().dtype == torch.float32
    assert torch.allclose(law.log_partition().double(), exact.log_partition(), rtol=16 * torch.finfo(torch.float32).eps)
    assert not torch.allclose(law.log_partition().to(half).double(), exact.log_partition(), rtol=1e-5)  # the mutant


@every
def test_without_gradients_the_answers_are_the_same(kind, device):
    law = make(kind, (4,), device=device)
    with torch.inference_mode():
        quiet = make(kind, (4,), device=device)
        answers = quiet.marginals(), quiet.entropy(), quiet.mode(), quiet.sample(3, seed=1)
    for one, other in zip(answers, (law.marginals(), law.entropy(), law.mode(), law.sample(3, seed=1)), strict=True):
        assert torch.allclose(one, other) and not one.requires_grad


@every
def test_weights_that_are_parameters_are_learned(kind, device):
    """An entropy regulariser and a likelihood in one loss: gradients reach every potential."""
    law = make(kind, (4,), device=device)
    potentials = {name: torch.nn.Parameter(value) for name, value in law.named_buffers() if value.is_floating_point()}
    rest = {name: value for name, value in law.named_buffers() if name in ("mask", "lengths")}
    learned = type(law)(**potentials, **rest)
    assert {name for name, _ in learned.named_parameters()} == set(potentials)
    (learned(learned.mode()) + learned.entropy()).sum().backward()
    assert all(bool(value.grad.isfinite().all()) and bool(value.grad.any()) for value in potentials.values())


@every
def test_where_all_are_equal_one_is_the_mode(kind, device):
    law = kind(lambda *shape: torch.zeros(shape, device=device), (3,), torch.tensor([4, 3, 2], device=device))
    assert law(law.mode()).isfinite().all() and torch.allclose(law(law.mode()), -law.entropy(), atol=1e-5)
    labels, log_prob = law.n_best(2)
    assert torch.allclose(law(labels), log_prob) and bool((labels[0, 0] != labels[1, 0]).any())
