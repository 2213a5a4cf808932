"""Grammars against all label sequences: what they allow is what spans can be written as."""

import itertools

import pytest
import torch

import gibbsite as gb
from gibbsite.apps.tagging.spans import spans, written

Grammar = gb.exact.Grammar
BIO = ["O", "B-A", "I-A", "B-B", "I-B"]
BIOES = ["I-B", "B-B", "O", "S-A", "E-B", "B-A", "S-B", "E-A", "I-A"]


def iob1(labels):
    """The spans of the labels in IOB1, by its definition."""
    out, behind = ["O"] * len(labels), None
    for span in spans(labels):
        out[span.start : span.end] = [f"I-{span.kind}"] * (span.end - span.start)
        if behind is not None and behind.end == span.start and behind.kind == span.kind:
            out[span.start] = f"B-{span.kind}"
        behind = span
    return tuple(out)


def same(labels, scheme):
    return written(spans(labels), len(labels), scheme)


CASES = {
    "bio": (Grammar.bio, BIO, lambda labels: same(labels, "bio")),
    "iob1": (Grammar.iob1, BIO, iob1),
    "bioes": (Grammar.bioes, BIOES, lambda labels: same(labels, "bioes")),
}


def disagreements(grammar, names, rewrite, length):
    """Sequences that the grammar allows, and that are not how their spans are written, and the other way round."""
    count = 0
    for y in itertools.product(range(len(names)), repeat=length):
        u = grammar.start[y[0]] + sum(grammar.edge[a, b] for a, b in itertools.pairwise(y)) + grammar.end[y[-1]]
        labels = tuple(names[k] for k in y)
        count += bool(u == 0) != (rewrite(labels) == labels)
    return count


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize(("make", "names", "rewrite"), CASES.values(), ids=CASES.keys())
def test_what_is_allowed_is_what_spans_are_written_as(make, names, rewrite, length):
    """The mutant begins and ends a sequence with any label."""
    assert disagreements(make(names), names, rewrite, length) == 0
    free = make(names)._replace(start=torch.zeros(len(names)), end=torch.zeros(len(names)))
    assert disagreements(free, names, rewrite, length) > 0


def test_bilou_is_bioes_by_other_letters():
    bilou = [name.translate({ord("E"): "L", ord("S"): "U"}) for name in BIOES]
    for one, other in zip(Grammar.bioes(bilou), Grammar.bioes(BIOES)):
        assert torch.equal(one, other)


def test_draws_keep_to_the_grammar(device):
    g = torch.Generator().manual_seed(0)
    node, edge = (torch.randn(shape, generator=g).to(device) for shape in ((4, 6, 9), (9, 9)))
    mask = torch.tensor([[1] * 6, [0, 1, 0, 1, 1, 1], [1, 0, 0, 0, 0, 0], [1, 1, 0, 1, 1, 0]]).bool().to(device)
    grammar = Grammar.bioes(BIOES).to(node)
    chain = gb.exact.LinearChain(node, edge + grammar.edge, start=grammar.start, end=grammar.end, mask=mask)
    drawn = chain.sample(20, seed=torch.Generator(device).manual_seed(0))
    assert chain(drawn).isfinite().all() and chain(chain.mode()).isfinite().all()
    for y in (*drawn, *chain.n_best(5).labels):  # of one label there are three sequences only
        for row, real in zip(y[chain(y) > -torch.inf], mask[chain(y) > -torch.inf]):
            labels = tuple(BIOES[k] for k in row[real])
            assert same(labels, "bioes") == labels


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["O"], "expected at least two names, all distinct, got ['O']"),
        ("OB", "expected at least two names, all distinct, got ['OB']"),
        (["O", "B-A", "O"], "all distinct, got ['O', 'B-A', 'O']"),
        (["O", "B-"], "expected O, or one of B, I, '-' and a kind, such as B-PER; got 'B-'"),
        (["O", "S-A"], "got 'S-A'"),
        ([0, 1], "got [0, 1]"),
    ],
)
def test_a_mistake_is_told(labels, words):
    with pytest.raises(ValueError) as raised:
        Grammar.bio(labels)
    assert words in str(raised.value)
