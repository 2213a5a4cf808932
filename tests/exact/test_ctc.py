"""CTC-CRF, LF-MMI and CTC against enumeration: V = 4 columns, T = 6 frames."""

import itertools

import pytest
import torch

import gibbsite as gb
from gibbsite.exact import CTCCRF, LFMMI, compose, ctc_graphs, ctc_loss, ctc_topology, forward, hmm_topology, restrict

from .graphs import bigram, collapse, log_prior, sequences

V, T = 4, 6
LABELS = [1, 2, 3]


def logits(batch=1, frames=T, columns=V, seed=5):
    return torch.randn(batch, frames, columns, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def padded(rows, fill=0):
    counts = torch.tensor([len(row) for row in rows])
    table = torch.full((len(rows), max(int(counts.max()), 1)), fill)
    for b, row in enumerate(rows):
        table[b, : len(row)] = torch.tensor(row, dtype=torch.long)
    return table, counts


def brute(e, table, y, of=collapse):
    """-log p(y | x) = log of the sum over all V^T alignments less that over those of y."""
    scores, written = [], []
    for path in itertools.product(range(e.shape[1]), repeat=len(e)):
        prior = log_prior(table, LABELS, of(path)) if table is not None else 0.0
        scores.append(prior + sum(e[t, k] for t, k in enumerate(path)))
        written.append(of(path))
    scores = torch.stack(scores)
    return scores.logsumexp(0) - scores[torch.tensor([w == y for w in written])].logsumexp(0)


def losses(module, e, rows, device):
    labels, counts = padded(rows)
    lengths = torch.full((len(rows),), e.shape[1])
    return module(e.to(device).expand(len(rows), -1, -1), labels.to(device), lengths, counts).cpu()


@pytest.mark.parametrize("y", [(), (2,), (1, 1), (3, 1, 2), (1, 2, 1, 2, 1, 2)], ids=str)
def test_the_loss_and_its_gradient_are_those_of_all_alignments(y, device):
    model, table = bigram(LABELS, seed=0)
    e = logits().requires_grad_()
    crf = CTCCRF(compose(ctc_topology(V), model))
    got, want = losses(crf, e, [y], device)[0], brute(e[0], table, y)
    assert abs(got - want) < 1e-12 and want > 0
    found, expected = (torch.autograd.grad(x, e)[0] for x in (got, want))
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)
    omitted = want + log_prior(table, LABELS, y)  # the mutant: a numerator without log p_LM(y)
    assert abs(got - omitted) > 0.1


def test_p_of_all_label_sequences_sums_to_one(device):
    model, table = bigram(LABELS, seed=1)
    rows = sequences(LABELS, T)  # 1093 of them; most cannot be written in T frames with their repeats
    e = logits(seed=6)
    crf = CTCCRF(compose(ctc_topology(V), model))
    with pytest.warns(UserWarning, match="of 1093 utterances have no path"):
        p = torch.exp(-losses(crf, e, rows, device))
    assert abs(p.sum() - 1) < 1e-12
    need = torch.tensor([len(y) + sum(a == b for a, b in itertools.pairwise(y)) for y in rows])
    assert torch.equal(p > 0, need <= T) and int(crf.impossible) == int((need > T).sum())
    prior = torch.stack([torch.as_tensor(log_prior(table, LABELS, y)) for y in rows]).exp()
    assert abs((p / prior).sum() - 1) > 0.1  # the mutant: without log p_LM(y) in the numerator


def test_a_bigram_denominator_has_one_sum_for_all_frames(device):
    """log Z of the composition is the sum over sequences of p_LM(y) times that of the alignments of y."""
    model, table = bigram(LABELS, seed=2)
    e, denominator = logits(seed=7), compose(ctc_topology(V), model)
    assert denominator.states == 1 + 2 * len(LABELS)
    got = forward(denominator.to(device), e.to(device), torch.tensor([T])).cpu()
    rows = sequences(LABELS, T)
    labels, counts = padded(rows)
    many = e.expand(len(rows), -1, -1)
    each = -ctc_loss(many, labels, torch.full((len(rows),), T), counts).double()
    want = (each + torch.stack([torch.as_tensor(log_prior(table, LABELS, y)) for y in rows])).logsumexp(0)
    assert abs(got - want) < 1e-12


def cases(seed):
    """Utterances of many lengths, some too short for their labels, some without labels."""
    g = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 31, (24,), generator=g)
    counts = torch.randint(0, 12, (24,), generator=g)
    return torch.randint(1, 7, (24, 12), generator=g), lengths, counts


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ctc_is_that_of_torch(dtype, device):
    labels, lengths, counts = cases(3)
    z = logits(24, 30, 7).to(dtype).requires_grad_()
    need = torch.tensor([n + sum(a == b for a, b in itertools.pairwise(y[:n])) for y, n in zip(labels.tolist(), counts)])
    some = need <= lengths  # torch's gradients of the others are NaN
    of_torch = z[some].log_softmax(-1).transpose(0, 1), labels[some], lengths[some], counts[some]
    want = torch.nn.functional.ctc_loss(*of_torch, reduction="none")
    e = z.to(device).log_softmax(-1)
    flat = CTCCRF(ctc_topology(7))
    with pytest.warns(UserWarning, match="no path"):
        crf = flat(e, labels.to(device), lengths, counts)
    for got in (ctc_loss(e, labels.to(device), lengths, counts), crf):
        assert got.dtype == dtype and torch.equal(got.cpu().isfinite(), some)
        assert torch.allclose(got.cpu()[some], want, rtol=1e-5, atol=1e-5)
        found, expected = (torch.autograd.grad(x.sum(), z, retain_graph=True)[0] for x in (got.cpu()[some], want))
        assert torch.allclose(found, expected, rtol=0, atol=1e-5)
    assert 0 < int(flat.impossible) == int((~some).sum())


def test_too_few_frames_give_infinity_without_gradient(device):
    labels, lengths, counts = cases(4)
    crf = CTCCRF(compose(ctc_topology(7), bigram([1, 2, 3, 4, 5, 6], seed=3)[0]), ctc_weight=0.1)
    e = logits(24, 30, 7).to(device).requires_grad_()
    with pytest.warns(UserWarning, match="of 24 utterances have no path"):
        loss = crf(e, labels.to(device), lengths, counts)
    none = loss.cpu() == torch.inf
    assert 0 < int(none.sum()) == int(crf.impossible) < 24
    (slope,) = torch.autograd.grad(loss.mean(), e)
    assert slope.isfinite().all() and not slope.cpu()[none].any() and slope.cpu()[~none].any()
    crf(e, labels.to(device), lengths, counts)  # said once; counted again
    assert int(crf.impossible) == 2 * int(none.sum())


def test_repeats_without_a_blank_are_one_label():
    """1 1 is written as 1 0 1 alone in three frames."""
    e = logits(1, 3)
    graph = ctc_topology(V)
    got = forward(restrict(graph, torch.tensor([[1, 1]]), torch.tensor([2])), e, torch.tensor([3]))
    assert abs(got[0] - (e[0, 0, 1] + e[0, 1, 0] + e[0, 2, 1])) < 1e-12
    loose = gb.exact.Graph.of([(0, 0, k, 0.0, k if k else gb.exact.EPSILON) for k in range(V)], end=0)  # the mutant
    assert forward(restrict(loose, torch.tensor([[1, 1]]), torch.tensor([2])), e, torch.tensor([3])) > got + 0.1


def test_alignments_made_directly_are_those_of_the_topology(device):
    labels, lengths, counts = cases(5)
    e = logits(24, 30, 7).to(device).requires_grad_()
    topology = ctc_topology(7).to(device)
    a = forward(ctc_graphs(labels.to(device), counts.to(device)), e, lengths)
    b = forward(restrict(topology, labels, counts), e, lengths)
    assert torch.equal(a.isfinite(), b.isfinite()) and torch.allclose(a[a.isfinite()], b[b.isfinite()], rtol=0, atol=1e-10)
    slopes = [torch.autograd.grad(x[x.isfinite()].sum(), e)[0] for x in (a, b)]
    assert torch.allclose(*slopes, rtol=0, atol=1e-10)


def test_lf_mmi_against_all_alignments(device):
    """Columns 2k and 2k + 1 begin and continue label k - 1; an alignment must begin a label before it continues it."""
    model, table = bigram([0, 1], seed=4)
    e = logits(1, 5).requires_grad_()
    crf = LFMMI(compose(hmm_topology(2), model))
    scores, written = [], []
    for path in itertools.product(range(V), repeat=5):
        if path[0] % 2 or any(b % 2 and a // 2 != b // 2 for a, b in itertools.pairwise(path)):
            continue
        written.append(tuple(k // 2 for k in path if k % 2 == 0))
        scores.append(log_prior(table, [0, 1], written[-1]) + sum(e[0, t, k] for t, k in enumerate(path)))
    scores = torch.stack(scores)
    for y in [(0,), (1, 1), (1, 0, 0)]:
        want = scores.logsumexp(0) - scores[torch.tensor([w == y for w in written])].logsumexp(0)
        got = losses(crf, e, [y], device)[0]
        assert abs(got - want) < 1e-12
        assert torch.allclose(*(torch.autograd.grad(x, e, retain_graph=True)[0] for x in (got, want)), rtol=0, atol=1e-12)


def test_the_mixture_with_ctc_adds_its_loss(device):
    denominator = compose(ctc_topology(V), bigram(LABELS, seed=0)[0])
    e = logits().log_softmax(-1)
    plain, mixed = CTCCRF(denominator), CTCCRF(denominator, ctc_weight=0.3)
    ctc = losses(ctc_loss, e, [(1, 2)], device)
    assert torch.allclose(losses(mixed, e, [(1, 2)], device), losses(plain, e, [(1, 2)], device) + 0.3 * ctc)


def test_label_models_that_learn_get_their_gradient(device):
    """-log p(y | x) by arcs of the label model: expected counts of all paths less those of y, by autograd of the sums."""
    model, table = bigram(LABELS, seed=5)
    e, y = logits(1, 4), (1, 3)
    weight = model.weight.clone().requires_grad_()
    learnt = gb.exact.Graph(*model.tensors()[:3], weight, *model.tensors()[4:])
    got = losses(CTCCRF(compose(ctc_topology(V), learnt)), e, [y], device)[0]
    (found,) = torch.autograd.grad(got, weight)
    table = table.clone().requires_grad_()
    (expected,) = torch.autograd.grad(brute(e[0], table, y), table)
    assert torch.allclose(found.view(4, 3), expected[:, :3], rtol=0, atol=1e-12)
