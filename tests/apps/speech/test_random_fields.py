"""CTC-CRF and LF-MMI against sums over all paths, their best paths against all paths, and what they owe the n-gram."""

import itertools
import math

import pytest
import torch

from gibbsite.apps.speech import BLANK, CTC, CTCRandomField, HMMRandomField
from gibbsite.apps.speech.criterion import collapsed

T, CLASSES = 4, 3
TRANSCRIPTS = [torch.tensor(labels) for labels in ([1, 2], [1, 2, 2], [2], [1], [1, 1, 2])]


def scores(columns, device="cpu", seed=0, frames=T):
    source = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(frames, columns, generator=source, dtype=torch.float64).to(device)


def log_lm(criterion, labels):
    """log p_LM of labels and of their end."""
    ngram = criterion.ngram.of_length(T + 1)
    padded = [*labels, *[BLANK] * (T + 1 - len(labels))]
    return ngram(torch.tensor([padded])).double()[0]


def ctc_paths(criterion, x):
    """(labels, phi) of every path, with log-softmax nodes."""
    log_p = x.log_softmax(-1).cpu()
    for path in itertools.product(range(CLASSES), repeat=len(x)):
        labels = tuple(collapsed(list(path)))
        yield labels, log_lm(criterion, labels) + sum(log_p[t, k] for t, k in enumerate(path)), path


def hmm_paths(criterion, x):
    """The same of hidden Markov models: k a frame, in column 2k where label k begins and 2k + 1 where it goes on."""
    x = x.cpu()
    for path in itertools.product([(k, new) for k in range(1, CLASSES + 1) for new in (True, False)], repeat=len(x)):
        if not path[0][1] or any(not new and k != before for (before, _), (k, new) in itertools.pairwise(path)):
            continue
        labels = tuple(k for k, new in path if new)
        yield labels, log_lm(criterion, labels) + sum(x[t, 2 * k + (not new)] for t, (k, new) in enumerate(path)), path


def loss(criterion, x, labels, device):
    """The loss of one utterance beside a longer one, in a padded batch."""
    padded = torch.stack((torch.cat((x, 9 * torch.ones(2, x.shape[1]).to(x))), scores(x.shape[1], device, 1, T + 2)))
    y = torch.zeros(2, 5, dtype=torch.long, device=device)
    y[0, : len(labels)], y[1, :2] = torch.tensor(labels, dtype=torch.long), torch.tensor([1, 2])
    frames, counts = (torch.tensor(values, device=device) for values in ([T, T + 2], [len(labels), 2]))
    return criterion(padded, frames, y, counts)[0]


def only(criterion, x):
    """The best labels of one utterance beside a longer one."""
    padded = torch.stack((torch.cat((x, 9 * torch.ones(2, x.shape[1]).to(x))), scores(x.shape[1], x.device, 1, T + 2)))
    return criterion.best(padded, torch.tensor([T, T + 2]))[0]


def gathered(paths):
    found = {}
    for labels, weight, path in paths:
        found.setdefault(labels, []).append((float(weight), path))
    return found


def log_sum(weights):
    return math.log(sum(math.exp(weight) for weight in weights))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_ctc_crf_is_the_sum_over_paths_and_sums_to_1(order, device):
    criterion = CTCRandomField(CLASSES, TRANSCRIPTS, order).to(device)
    x = scores(CLASSES, device)
    every = gathered(ctc_paths(criterion, x))
    log_z, total = log_sum([w for paths in every.values() for w, _ in paths]), 0.0
    for labels, paths in every.items():
        expected = log_z - log_sum([w for w, _ in paths])
        total += math.exp(-expected)
        if labels:
            assert float(loss(criterion, x, labels, device)) == pytest.approx(expected, abs=1e-5)
    assert total == pytest.approx(1)
    without = log_z - log_sum([w for w, _ in every[1, 2]]) + float(log_lm(criterion, (1, 2)))
    assert float(loss(criterion, x, (1, 2), device)) != pytest.approx(without, abs=1e-3)  # the mutant: p_LM(y) left out


@pytest.mark.parametrize("made", [CTCRandomField, HMMRandomField])
def test_gradients_are_those_of_the_sum_over_paths(made, device):
    criterion, paths = made(CLASSES, TRANSCRIPTS, 2).to(device), ctc_paths if made is CTCRandomField else hmm_paths
    x = scores(criterion.classes, device).requires_grad_(True)
    said = (1, 2) if made is CTCRandomField else (3, 1, 3)
    every = [(labels, weight) for labels, weight, _ in paths(criterion, x)]
    log_z = torch.stack([weight for _, weight in every]).logsumexp(0)
    given = torch.stack([weight for labels, weight in every if labels == said]).logsumexp(0)
    expected = torch.autograd.grad(log_z - given, x)[0]
    found = torch.autograd.grad(loss(criterion, x, said if made is CTCRandomField else (1,), device), x)[0]
    assert torch.allclose(found, expected, atol=1e-6)
    assert not torch.allclose(torch.autograd.grad(-given_of(paths, criterion, x, said), x)[0], expected, atol=1e-3)


def given_of(paths, criterion, x, said):
    """The mutant: no denominator."""
    return torch.stack([weight for labels, weight, _ in paths(criterion, x) if labels == said]).logsumexp(0)


def test_ctc_may_be_added_to_it(device):
    x, labels = scores(CLASSES, device), (1, 2)
    plain, mixed = (CTCRandomField(CLASSES, TRANSCRIPTS, 2, weight).to(device) for weight in (0.0, 0.5))
    expected = loss(plain, x, labels, device) + 0.5 * loss(CTC(CLASSES), x, labels, device)
    assert float(loss(mixed, x, labels, device)) == pytest.approx(float(expected), abs=1e-5)


def test_lf_mmi_is_the_sum_over_paths_and_sums_to_1(device):
    criterion = HMMRandomField(CLASSES, TRANSCRIPTS, 2).to(device)
    assert criterion.classes == 8 and criterion.silence == 3
    x = scores(criterion.classes, device)
    every = gathered(hmm_paths(criterion, x))
    log_z = log_sum([w for paths in every.values() for w, _ in paths])
    for labels in ((1,), (2,), (1, 2), (1, 1)):
        expected = log_z - log_sum([w for w, _ in every[3, *labels, 3]])
        assert float(loss(criterion, x, labels, device)) == pytest.approx(expected, abs=1e-5)
    assert float(loss(criterion, x, (1,), device)) != pytest.approx(log_z - log_sum([w for w, _ in every[(1,)]]), abs=1e-3)
    assert criterion.needed(torch.tensor([1, 1])) == 4


@pytest.mark.parametrize("seed", range(4))
def test_best_paths_are_the_best_of_all(seed, device):
    field, hidden = (made(CLASSES, TRANSCRIPTS, 3).to(device) for made in (CTCRandomField, HMMRandomField))
    x = scores(CLASSES, device, seed)
    every = gathered(ctc_paths(field, x))
    best = max(every, key=lambda labels: max(every[labels]))
    assert only(field, x) == list(best)
    if best:
        assert field.aligned(x, torch.tensor(best, device=device)).tolist() == list(max(every[best])[1])
    x = scores(hidden.classes, device, seed)
    every = gathered(hmm_paths(hidden, x))
    best = max(every, key=lambda labels: max(every[labels]))
    assert only(hidden, x) == [label for label in best if label != 3]
    path = [k if k != 3 else BLANK for k, _ in max(every[3, 1, 3])[1]]
    assert hidden.aligned(x, torch.tensor([1], device=device)).tolist() == path


@pytest.mark.parametrize("seed", range(3))
def test_lists_are_the_most_probable_with_their_probabilities(seed, device):
    x = scores(CLASSES, device, seed)
    for criterion in (CTC(CLASSES), CTCRandomField(CLASSES, TRANSCRIPTS, 2).to(device)):
        field = isinstance(criterion, CTCRandomField)
        weights = ctc_paths(criterion, x) if field else ctc_paths_without(x)
        sums = {labels: log_sum([w for w, _ in paths]) for labels, paths in gathered(weights).items()}
        log_z = log_sum(sums.values())
        best = sorted(sums, key=lambda labels: -sums[labels])[:6]
        found = criterion.listed(x, 6, 200)
        assert [tuple(labels) for labels, _ in found] == best
        assert [score for _, score in found] == pytest.approx([sums[labels] - log_z for labels in best])
    hidden, sums = HMMRandomField(CLASSES, TRANSCRIPTS, 2).to(device), {}
    x = scores(hidden.classes, device, seed)
    for labels, weight, _ in hmm_paths(hidden, x):
        sums.setdefault(tuple(label for label in labels if label != hidden.silence), []).append(float(weight))
    log_z = log_sum([weight for weights in sums.values() for weight in weights])
    best = sorted(sums, key=lambda labels: -log_sum(sums[labels]))[:4]
    found = hidden.listed(x, 4, 200)
    assert [tuple(labels) for labels, _ in found] == best
    assert [score for _, score in found] == pytest.approx([log_sum(sums[labels]) - log_z for labels in best])


def ctc_paths_without(x):
    """(labels, weight) of every path of CTC."""
    log_p = x.log_softmax(-1).cpu()
    for path in itertools.product(range(CLASSES), repeat=len(x)):
        yield tuple(collapsed(list(path))), sum(log_p[t, k] for t, k in enumerate(path)), path
