"""What a person reads of an estimate."""

import math

import gibbsite as gb


def test_digits_follow_the_error_and_one_sided_ends_are_words():
    shown = str(gb.Estimate(1406.98, 0.2, 1404.99, 1408.61, ess=49.3, n=100))
    assert shown == "1,406.98 ± 0.20, in [1,404.99, 1,408.61], ESS 49 of 100, trusted"
    assert "at most 2.00" in str(gb.Estimate(1.0, 0.5, -math.inf, 2.0, ess=3.0, n=9))
    assert str(gb.Estimate(1.0, 0.0, 1.0, 1.0, ess=9, n=9)).startswith("1.000 ± 0.000")
    assert "inf" in str(gb.Estimate(1.0, math.inf, -math.inf, math.inf, ess=1, n=1))
    assert "NOT trusted: too few" in str(gb.Estimate(1.0, 0.1, 0.7, 1.3, ess=1, n=5, trusted=False, why="too few"))
