"""Clipping by Adam's second moment against its definition, step by step."""

import pytest
import torch

import gibbsite as gb
from gibbsite.learn import AdamClip


def run(gradients, clip, betas=(0.9, 0.9)):
    """The gradients after clipping, in an Adam that sees them so."""
    weight = torch.nn.Parameter(torch.zeros(len(gradients[0])))
    optimiser = torch.optim.Adam([weight], lr=0.1, betas=betas)
    seen = []
    for gradient in gradients:
        weight.grad = gradient.clone()
        clip(optimiser)
        seen.append(weight.grad.clone())
        optimiser.step()
    return torch.stack(seen)


def defined(gradients, deviations, floor, beta=0.9, corrected=True):
    """The same by hand; without the correction it is the mutant."""
    second, seen = torch.zeros_like(gradients[0]), []
    for step, gradient in enumerate(gradients):
        if step:
            v = second / (1 - beta**step) if corrected else second
            gradient = gradient.clamp(-deviations * v.sqrt() - floor, deviations * v.sqrt() + floor)
        second = beta * second + (1 - beta) * gradient**2
        seen.append(gradient)
    return torch.stack(seen)


def test_it_is_its_definition(double):
    gradients = torch.randn(30, 5, generator=torch.Generator().manual_seed(0)) ** 5  # heavy tails
    found = run(list(gradients), AdamClip(3.0, 0.1))
    assert torch.allclose(found, defined(list(gradients), 3.0, 0.1), atol=1e-12)
    assert not torch.allclose(found, defined(list(gradients), 3.0, 0.1, corrected=False))
    assert (found != gradients).any() and (found == gradients).any()


def test_the_first_gradient_and_those_of_a_silent_entry_pass():
    gradients = [torch.tensor([100.0, 0.0]), torch.tensor([1.0, 0.05]), torch.tensor([1.0, 5.0])]
    found = run(gradients, AdamClip())
    assert torch.equal(found[:2], torch.stack(gradients[:2])) and 0.1 < found[2, 1] < 5


def test_fit_clips_by_it():
    model = gb.distributions.Bernoulli([0.0])
    chains = gb.learn.Persistent(gb.sample.Gibbs(), model.space.uniform().sample(8, seed=0))
    objective, data = gb.learn.Contrastive(model, chains), model.space.uniform().sample(8, seed=1)
    options = {"steps": 5, "batch": 4, "seed": 0, "progress": False}
    gb.learn.fit(objective, data, optimiser=torch.optim.Adam(model.parameters()), clip=AdamClip(), **options)
    with pytest.raises(TypeError, match="expected Adam or one of its kin, which know a second moment, got SGD"):
        gb.learn.fit(objective, data, optimiser=torch.optim.SGD(model.parameters(), 0.1, 0.9), clip=AdamClip(), **options)
