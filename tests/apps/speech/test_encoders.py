"""Encoders: what stands beside an utterance changes nothing, weights come from their seed, dropout from its source."""

import pytest
import torch

from gibbsite.apps.speech import BiLSTM, Conformer, SpeechError, drawn
from gibbsite.apps.speech.batches import collated
from gibbsite.apps.speech.conformer import rotated
from gibbsite.apps.speech.encoder import dropped

MADE = {
    "BiLSTM": (BiLSTM, {"size": 5, "cells": 8, "layers": 2, "subsample": 3}),
    "Conformer": (Conformer, {"size": 5, "width": 16, "layers": 2, "heads": 2, "kernel": 5, "subsample": 2}),
}
by_encoder = pytest.mark.parametrize("name", MADE)


def recogniser(name, seed=0):
    return drawn(*MADE[name], classes=4, seed=seed).double()


def recordings(*lengths):
    source = torch.Generator().manual_seed(1)
    return [torch.randn(length, 5, generator=source, dtype=torch.float64) for length in lengths]


def batch_of(parts, device):
    return collated(parts, [torch.ones(1, dtype=torch.long)] * len(parts), device)


@by_encoder
def test_what_stands_beside_an_utterance_changes_nothing(name, device):
    model, parts = recogniser(name).to(device), recordings(7, 12, 1, 9)
    scores, frames = model(*batch_of(parts, device)[:2])
    step = MADE[name][1]["subsample"]
    assert frames.tolist() == [-(-len(part) // step) for part in parts]
    for row, part, count in zip(scores, parts, frames):
        alone, _ = model(*batch_of([part], device)[:2])
        assert torch.allclose(row[:count], alone[0], atol=1e-12)


@by_encoder
def test_every_frame_and_every_weight_counts(name, device):
    model, (part,) = recogniser(name).to(device), recordings(10)
    features, lengths = batch_of([part], device)[:2]
    features.requires_grad_(True)
    scores, _ = model(features, lengths)
    scores.square().sum().backward()
    assert bool((features.grad.abs().sum(-1) > 0).all())
    assert all(bool(parameter.grad.abs().sum() > 0) for parameter in model.parameters())


@by_encoder
def test_weights_come_from_the_seed_and_dropout_from_the_source(name, device):
    first, again, other = (recogniser(name, seed).to(device) for seed in (0, 0, 1))
    batch = batch_of(recordings(8, 6), device)[:2]
    scores = first(*batch)[0]
    assert torch.equal(scores, again(*batch)[0]) and not torch.allclose(scores, other(*batch)[0])
    one, two, three = (first(*batch, torch.Generator(device).manual_seed(seed))[0] for seed in (3, 3, 4))
    assert torch.equal(one, two) and not torch.allclose(one, three) and not torch.allclose(one, scores)


def test_dropout_keeps_means(device):
    x = torch.ones(100_000, device=device)
    found = dropped(x, 0.3, torch.Generator(device).manual_seed(0))
    assert set(found.unique().tolist()) == {0.0, float(x[0] / (1 - 0.3))}
    error = (0.3 / 0.7 / len(x)) ** 0.5
    assert abs(float(found.mean()) - 1) < 4.9 * error  # a false alarm in a million
    assert dropped(x, 0.3, None) is x


def test_rotated_products_depend_on_distances_alone(double):
    source = torch.Generator().manual_seed(0)
    q, k = (torch.randn(6, generator=source).expand(1, 1, 9, 6) for _ in range(2))
    products = (rotated(q) @ rotated(k).mT)[0, 0]
    for distance in range(-8, 9):
        diagonal = products.diagonal(distance)
        assert torch.allclose(diagonal, diagonal[:1].expand_as(diagonal))
    assert not torch.allclose(products[0, 1], products[0, 4])


def test_odd_widths_are_named():
    with pytest.raises(SpeechError, match="expected a multiple of 8 and an odd number, got 12, 5"):
        Conformer(5, width=12, kernel=5)
