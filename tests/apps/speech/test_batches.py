"""Batches hold every utterance once beside others of like length; masks have their widths, and only masks."""

import torch

from gibbsite.apps.speech import CTC, Batches, BiLSTM, Masks, Transcription, batched, drawn
from gibbsite.apps.speech.batches import Batch
from gibbsite.learn import fit

LENGTHS = (9, 3, 7, 12, 5)


def corpus():
    features = [torch.full((length, 4), float(number + 1)) for number, length in enumerate(LENGTHS)]
    return features, [1 + torch.arange(number + 1) % 2 for number in range(len(LENGTHS))]


def test_each_utterance_is_in_one_batch_of_like_lengths(device):
    batches = batched(*corpus(), 2, device)
    assert [batch.lengths.tolist() for batch in batches] == [[3, 5], [7, 9], [12]]
    assert [batch.label_lengths.tolist() for batch in batches] == [[2, 5], [3, 1], [4]]
    assert batches[1].features[:, :, 0].tolist() == [[3.0] * 7 + [0.0] * 2, [1.0] * 9]
    assert batches[0].labels.tolist() == [[1, 2, 0, 0, 0], [1, 2, 1, 2, 1]] and batches[0].features.device == device


def test_masks_are_as_wide_as_they_may_be_and_lie_within(device):
    batch = Batch(torch.ones(2000, 20, 8, device=device), torch.full((2000,), 10, device=device), *[torch.ones(1)] * 2)
    masked = Masks(times=1, time_share=0.3, bands=0)(batch, torch.Generator().manual_seed(0)).features
    gone = (masked == 0).all(-1)
    assert not gone[:, 10:].any() and bool((masked.sum(-1) % 8 == 0).all())
    counts = gone.sum(1).bincount(minlength=4).tolist()
    assert len(counts) == 4 and all(abs(count - 500) < 4.9 * (2000 * 0.25 * 0.75) ** 0.5 for count in counts)
    banded = Masks(times=0, bands=1, band_share=0.25)(batch, torch.Generator().manual_seed(0)).features
    assert set((banded == 0).all(1).sum(1).tolist()) == {0, 1, 2} and bool(
        ((banded == 0).all(1) == (banded[:, 0] == 0)).all()
    )
    assert Masks(times=0)(batch, torch.Generator()).features is batch.features


def test_learning_goes_on_bit_for_bit(tmp_path, device):
    def learned(steps, out=None):
        recogniser = drawn(BiLSTM, {"size": 4, "cells": 3, "layers": 1, "subsample": 1}, classes=3, seed=0).to(device)
        objective = Transcription(recogniser, CTC(3))
        data = Batches(batched(*corpus(), 2, device), Masks(times=1))
        optimiser = torch.optim.Adam(objective.parameters(), 0.01)
        return fit(objective, data, optimiser=optimiser, steps=steps, batch=1, seed=0, out=out)

    learned(4, tmp_path)
    again, whole = learned(7, tmp_path), learned(7)
    tolerance = 0 if device.type == "cpu" else 1e-4  # the kernel of CTC's gradient adds in any order on a GPU
    for name, value in whole.objective.state_dict().items():
        assert torch.allclose(again.objective.state_dict()[name], value, rtol=0, atol=tolerance), name
    assert whole.metrics[-1]["loss"] > 0


def test_the_loss_is_that_of_a_label(double, device):
    recogniser = drawn(BiLSTM, {"size": 4, "cells": 3, "layers": 1, "subsample": 1, "dropout": 0}, classes=3, seed=0)
    batch = batched([part.double() for part in corpus()[0]], corpus()[1], 2, device)[1]
    objective = Transcription(recogniser.to(device), CTC(3))
    report = objective([tuple(batch)] * 2, seed=torch.Generator(device).manual_seed(0))
    scores, frames = recogniser(batch.features, batch.lengths)
    losses = CTC(3)(scores, frames, batch.labels, batch.label_lengths)
    assert torch.allclose(report.loss, losses.sum() / 4) and report.loss.requires_grad
    assert not torch.allclose(report.loss, losses.mean())  # the mutant: a mean over utterances
