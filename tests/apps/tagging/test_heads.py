"""Heads as laws: sums over all label sequences, whatever the mask; what they give is that of their definition."""

import pytest
import torch

from gibbsite.apps.tagging.heads import Head

from .laws import LABELS, every, heads, placed, potential, sentences

MASKS = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]]
FULL = LABELS**4
by_head = pytest.mark.parametrize("name", heads())


def law(head, features, mask):
    """All label sequences of each sentence, placed at the mask, with their log p."""
    for row in range(len(mask)):
        labels = placed(every(int(mask[row].sum())).to(mask.device), mask[row])
        many = [x[row].expand(len(labels), *x[row].shape) for x in (features, mask)]
        yield labels, head.log_p(*many, labels)


@by_head
def test_probabilities_sum_to_one_under_any_mask(name, device):
    head, (features, mask, _) = heads(FULL, device)[name], sentences(MASKS, device)
    for _, log_p in law(head, features, mask):
        assert abs(log_p.logsumexp(0)) < 1e-12


@by_head
def test_what_lies_beyond_the_mask_is_ignored(name, device):
    head, (features, mask, labels) = heads(FULL, device)[name], sentences(MASKS, device)
    before = head.log_p(features, mask, labels)
    spoiled = torch.where(mask[..., None], features, 1e3), mask, torch.where(mask, labels, -100)
    assert torch.equal(before, head.log_p(*spoiled))
    assert (head.best(*spoiled[:2], 2).labels * ~mask[:, None] == 0).all()


@by_head
def test_the_loss_is_minus_log_p(name, device):
    head, (features, mask, labels) = heads(FULL, device)[name], sentences(MASKS, device)
    loss = head.loss(features, mask, labels, source=None).values
    assert torch.allclose(loss, -head.log_p(features, mask, labels), atol=1e-12)


@by_head
def test_the_best_are_the_best_and_their_probabilities_are_right(name, device):
    head, (features, mask, _) = heads(FULL, device)[name], sentences(MASKS, device)
    best = head.best(features, mask, 4)
    for row, (labels, log_p) in enumerate(law(head, features, mask)):
        top, index = log_p.topk(min(4, len(log_p)))
        assert torch.allclose(best.log_p[row, : len(top)], top, atol=1e-12)
        assert torch.equal(best.labels[row, : len(top)], labels[index])
        assert (best.log_p[row, len(top) :] == -torch.inf).all()


@by_head
def test_marginals_are_sums_over_sequences(name, device):
    head, (features, mask, _) = heads(FULL, device)[name], sentences(MASKS, device)
    marginals = head.marginals(features, mask)
    for row, (labels, log_p) in enumerate(law(head, features, mask)):
        one_hot = torch.nn.functional.one_hot(labels, LABELS) * mask[row, :, None]
        assert torch.allclose(marginals[row], (log_p.exp()[:, None, None] * one_hot).sum(0), atol=1e-12)


@pytest.mark.parametrize("name", ["rnn-t", "crf-t, sum", "crf-t, separate"])
def test_transducers_are_their_definition(name, device):
    head, (features, mask, labels) = heads(FULL, device)[name], sentences([[1, 1, 1, 1]], device)
    u = torch.stack([potential(head, features[0], y) for y in every(4).to(device)])
    log_p = potential(head, features[0], labels[0]) - u.logsumexp(0)
    assert torch.allclose(head.log_p(features, mask, labels)[0], log_p, atol=1e-12)
    if name == "rnn-t":
        assert abs(u.logsumexp(0)) < 1e-12
    else:
        assert abs(u.logsumexp(0)) > 1e-3, "the mutant: a law that is normalised place by place"


@by_head
def test_gradients_are_those_of_the_definition(name, device):
    head, (features, mask, labels) = heads(FULL, device)[name], sentences([[1, 1, 1]], device)
    if not name.startswith(("rnn", "crf-t")):
        return
    parameters = list(head.parameters())
    u = torch.stack([potential(head, features[0], y) for y in every(3).to(device)])
    exact = torch.autograd.grad(u.logsumexp(0) - potential(head, features[0], labels[0]), parameters)
    found = torch.autograd.grad(head.loss(features, mask, labels, source=None).values[0], parameters)
    for one, other in zip(exact, found):
        assert torch.allclose(one, other, atol=1e-12)


@by_head
def test_a_head_is_made_again_of_its_settings(name, device):
    head, (features, mask, labels) = heads(FULL, device)[name], sentences(MASKS, device)
    again = type(head).restored(head.settings(), features.shape[-1], LABELS).to(device).double()
    assert isinstance(again, Head)
    again.load_state_dict(head.state_dict())
    assert torch.equal(again.log_p(features, mask, labels), head.log_p(features, mask, labels))
