"""CTC against all paths, its best alignments against all alignments, and what too few frames give."""

import itertools

import pytest
import torch

from gibbsite.apps.speech import CTC
from gibbsite.apps.speech.criterion import collapsed, frames_needed

T, CLASSES = 4, 3


def scores(device="cpu", frames=T, seed=0):
    source = torch.Generator().manual_seed(seed)
    return torch.randn(frames, CLASSES, generator=source, dtype=torch.float64).to(device)


def by_labels(log_p):
    """log p of every path, gathered by the labels it maps to."""
    found = {}
    for path in itertools.product(range(log_p.shape[1]), repeat=len(log_p)):
        weight = sum(log_p[t, k] for t, k in enumerate(path))
        found.setdefault(tuple(collapsed(list(path))), []).append((weight, path))
    return found


def batch(x, labels, device):
    """The loss of one utterance beside a longer one, in a padded batch."""
    padded = torch.stack((torch.cat((x, 9 * torch.ones(2, CLASSES).to(x))), scores(device, T + 2, seed=1)))
    y = torch.zeros(2, 5, dtype=torch.long, device=device)
    y[0, : len(labels)], y[1, :2] = torch.tensor(labels, dtype=torch.long), torch.tensor([1, 2])
    frames, counts = (torch.tensor(values, device=device) for values in ([T, T + 2], [len(labels), 2]))
    return CTC(CLASSES)(padded, frames, y, counts)


def test_ctc_is_the_sum_over_paths_and_sums_to_1(device):
    x = scores(device)
    every = by_labels(x.log_softmax(-1).cpu())
    total = 0.0
    for labels, paths in every.items():
        expected = -torch.stack([weight for weight, _ in paths]).logsumexp(0)
        if labels:
            assert torch.allclose(batch(x, labels, device)[0].cpu(), expected)
            assert frames_needed(torch.tensor(labels)) <= T
        total += float(torch.exp(-expected))
    assert total == pytest.approx(1)
    unnormalised = -torch.stack([sum(x.cpu()[t, k] for t, k in enumerate(p)) for _, p in every[1, 2]]).logsumexp(0)
    assert not torch.allclose(batch(x, (1, 2), device)[0].cpu(), unnormalised)  # the mutant: no softmax


def test_too_few_frames_give_infinity(device):
    assert frames_needed(torch.tensor([1, 1, 2, 2])) == 6
    assert float(batch(scores(device), (1, 1, 1), device)[0]) == torch.inf
    assert bool(batch(scores(device), (1, 1, 1), device)[1].isfinite())


def test_alignments_are_the_best_of_all(device):
    for seed in range(5):
        log_p = scores(device, seed=seed).log_softmax(-1)
        for labels, paths in by_labels(log_p.cpu()).items():
            if labels:
                found = CTC(CLASSES).aligned(log_p, torch.tensor(labels, device=device))
                assert tuple(found.tolist()) == max(paths)[1]
        best = max((paths for paths in by_labels(log_p.cpu()).items()), key=lambda item: max(item[1]))[0]
        assert CTC(CLASSES).best(log_p[None], torch.tensor([T])) == [list(best)]
