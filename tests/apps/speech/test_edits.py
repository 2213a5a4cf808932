"""Edits are those that jiwer counts, and the fewest."""

import torch

from gibbsite.apps.speech.edits import aligned, edits


def words(source):
    length = int(torch.randint(1, 8, (1,), generator=source))
    return [f"w{k}" for k in torch.randint(4, (length,), generator=source).tolist()]


def fewest(a, b):
    """By its definition, from the ends."""
    if not a or not b:
        return len(a) + len(b)
    return min(fewest(a[1:], b[1:]) + (a[0] != b[0]), fewest(a[1:], b) + 1, fewest(a, b[1:]) + 1)


def test_counts_are_those_of_jiwer():
    import jiwer

    source = torch.Generator().manual_seed(0)
    for _ in range(200):
        reference, hypothesis = words(source), words(source)
        theirs, ours = jiwer.process_words(" ".join(reference), " ".join(hypothesis)), edits(reference, hypothesis)
        assert ours.errors == theirs.substitutions + theirs.deletions + theirs.insertions
        assert ours.length == len(reference) and ours.insertions - ours.deletions == len(hypothesis) - len(reference)


def test_edits_are_the_fewest_and_their_alignment_is_one():
    source = torch.Generator().manual_seed(1)
    for _ in range(30):
        a, b = words(source)[:5], words(source)[:5]
        pairs = aligned(a, b)
        assert [x for x, _ in pairs if x is not None] == a and [y for _, y in pairs if y is not None] == b
        assert sum(x != y for x, y in pairs) == edits(a, b).errors == fewest(a, b)
    assert edits([], ["a"]) == (0, 0, 1, 0) and edits(["a"], []) == (0, 1, 0, 1) and edits([], []).errors == 0
