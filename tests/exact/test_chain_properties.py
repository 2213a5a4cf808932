"""Linear chains under masks drawn at random: the definition, and what must not change log Z."""

import itertools

import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from gibbsite.exact import LinearChain

from .test_linear_chain import close, definition, random_chain

masks = some.integers(1, 5).flatmap(
    lambda T: some.lists(some.lists(some.booleans(), min_size=T, max_size=T), min_size=1, max_size=3)
)
cases = some.fixed_dictionaries(
    {
        "seed": some.integers(0, 1000),
        "masks": masks,
        "per_position": some.booleans(),
        "own_ends": some.booleans(),
        "K": some.integers(2, 3),
        "forbid": some.sampled_from([0.0, 0.3]),
    }
)


@settings(max_examples=60, deadline=None)
@given(cases)
def test_the_definition(case):
    chain = random_chain(**case)
    mode, total, entropy = chain.mode(), chain.log_partition(), chain.entropy()
    for b, (x, u) in enumerate(definition(chain)):
        assert close(total[b], u.logsumexp(0)) and torch.equal(mode[b], x[u.argmax()])
        p = u.softmax(0)
        assert close(entropy[b], -(p * p.log().masked_fill(p == 0, 0)).sum())


@settings(max_examples=30, deadline=None)
@given(cases, some.floats(-30, 30))
def test_a_constant_moves_log_z_by_it_for_each_label_and_nothing_else(case, constant):
    chain = random_chain(**case)
    moved = LinearChain(chain.node + constant, chain.edge, start=chain.start, end=chain.end, mask=chain.mask)
    assert close(moved.log_partition(), chain.log_partition() + constant * chain.mask.sum(-1).double())
    assert close(moved.marginals(), chain.marginals()) and close(moved.entropy(), chain.entropy())


@settings(max_examples=30, deadline=None)
@given(cases)
def test_a_chain_read_backwards_is_the_same_law(case):
    """With edges of their own, the one over a hole enters on the other side: it is moved there first."""
    chain = random_chain(**case)
    edge = chain.edge.mT
    if edge.ndim > 2:
        B, T, K = chain.node.shape
        edge = edge.expand(B, T - 1, K, K).clone()
        for b, real in enumerate(chain.mask):
            places = real.nonzero()[:, 0].tolist()
            for left, right in itertools.pairwise(places):
                edge[b, left] = chain.edge.mT[b, right - 1]
        edge = edge.flip(1)
    flipped = LinearChain(chain.node.flip(-2), edge, start=chain.end, end=chain.start, mask=chain.mask.flip(-1))
    assert close(flipped.log_partition(), chain.log_partition())
    assert close(flipped.marginals().flip(-2), chain.marginals()) and torch.equal(flipped.mode().flip(-1), chain.mode())
