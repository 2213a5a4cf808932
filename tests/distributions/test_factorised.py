"""Independent bits and sites: their law, and fitting them to data."""

import pytest
import torch

import gibbsite as gb
from gibbsite.distributions import Bernoulli, Independent

BITS = torch.tensor([[0, 1, 1], [1, 0, 1], [1, 1, 1], [1, 0, 1]])


def test_fits_are_the_smoothed_frequencies(double):
    wanted = torch.tensor([(3 + 0.5) / 5, (2 + 0.5) / 5, (4 + 0.5) / 5])
    assert torch.allclose(Bernoulli.fit(BITS, pseudocount=0.5).logits.sigmoid(), wanted, atol=1e-15)
    law = Independent.fit(BITS, states=3, pseudocount=1.0).logits.softmax(-1)
    assert torch.allclose(law[0], torch.tensor([2.0, 4.0, 1.0]) / 7, atol=1e-15)
    assert torch.allclose(Bernoulli.fit(BITS[:, :2], pseudocount=0).logits.sigmoid(), torch.tensor([0.75, 0.5]), atol=1e-15)


@pytest.mark.parametrize("make", [Bernoulli.fit, lambda x, **more: Independent.fit(x, states=2, **more)])
def test_a_value_that_is_never_seen_takes_a_pseudocount(make):
    with pytest.raises(ValueError, match=r"site \[2\] is never 0; give a pseudocount > 0"):
        make(BITS, pseudocount=0)
    with pytest.raises(ValueError, match=r"site \[1, 0\] is never 1"):
        make(torch.tensor([[[1, 0], [0, 1]], [[0, 1], [0, 0]]]), pseudocount=0.0)
    for wrong in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="pseudocount: expected a non-negative number"):
            make(BITS, pseudocount=wrong)


def test_laws_sum_to_one():
    for q in (Bernoulli.fit(BITS), Independent.fit(BITS, states=3)):
        assert abs(gb.exact.log_z(q).item()) < 1e-6
