"""Models and distributions made from lists and arrays are those made from tensors."""

import numpy as np
import torch

import gibbsite as gb

D, M = gb.distributions, gb.models


def test_lists_and_arrays_make_the_same_models_as_tensors():
    covariance = [[2.0, 0.5], [0.5, 1.0]]
    pairs = [
        (D.Normal([0, 1], covariance), D.Normal(torch.tensor([0.0, 1.0]), torch.tensor(covariance))),
        (D.Normal.diagonal([0, 1], [1, 2]), D.Normal.diagonal(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))),
        (D.NormalMixture([1], [[0, 1]], [2]), D.NormalMixture([1], torch.tensor([[0.0, 1.0]]), 2.0)),
        (D.Bernoulli([0.5, -1]), D.Bernoulli(torch.tensor([0.5, -1.0]))),
        (M.FHMM([1.0, 2.0], [0.5], 1), M.FHMM(torch.tensor([1.0, 2.0]), torch.tensor([0.5]), 1.0)),
        (M.Potts(np.zeros((2, 3, 2, 3)), [[0, 1, 2]] * 2), M.Potts(torch.zeros(2, 3, 2, 3), torch.arange(3.0).expand(2, 3))),
        (
            M.RBM.from_weights([[1, 2]], [0, 1], [3]),
            M.RBM.from_weights(*map(torch.tensor, ([[1.0, 2.0]], [0.0, 1.0], [3.0]))),
        ),
    ]
    for listed, tensors in pairs:
        x = torch.tensor([[0.3, 0.7]]) if isinstance(listed.space, gb.Real) else gb.exact.states(listed.space)
        assert torch.allclose(listed(x).double(), tensors(x).double())


def test_a_normal_law_takes_the_wider_type_of_its_moments():
    q = D.Normal([0.0, 0.0], np.eye(2))
    assert q.mean.dtype == q.covariance.dtype == torch.float64 and q(q.sample(3, seed=0)).dtype == torch.float64
