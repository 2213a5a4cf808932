"""What every estimator gives: a number with its error, a lower and an upper end, and whether they can be trusted."""

import math
from dataclasses import dataclass
from typing import final

from ..sample.kernel import Cost

MARGIN = 3.0  # standard errors between a value and an end
SKEWED = 1.0  # standard errors: a first-order correction of the margin above that is no small one
FEW = 5.0  # an effective sample size below this leaves the error itself unknown


@final
@dataclass(frozen=True)
class Estimate:
    """`value` with its standard error; `lower` and `upper` are the ends that the method itself can claim.

    The ends lie three standard errors beyond what was seen; a method that bounds one side only leaves the other infinite.
    `trusted` is False, and `why` says in words why, where value and ends should not be relied upon. `ess` is the effective
    sample size of `n` weights or draws, `cost` what each chain (or draw) took in evaluations of U, the base's among them,
    and of gradients; pilot runs that fit a base or tune a kernel are apart.

    Example:
        >>> import gibbsite as gb
        >>> print(gb.Estimate(11.2, 0.05, 11.05, 11.41, ess=80.0, n=100))
        11.200 ± 0.050, in [11.050, 11.410], ESS 80 of 100, trusted
        >>> print(gb.Estimate(11.2, 0.5, 9.7, float("inf"), ess=1.3, n=100, trusted=False, why="the ESS is 1.3 of 100"))
        11.20 ± 0.50, at least 9.70, ESS 1.3 of 100, NOT trusted: the ESS is 1.3 of 100
    """

    value: float
    stderr: float
    lower: float
    upper: float
    ess: float
    n: int
    cost: Cost = Cost()  # noqa: RUF009  (a NamedTuple)
    trusted: bool = True
    why: str = ""

    def __str__(self) -> str:
        places = 3 if not 0 < self.stderr < math.inf else max(0, min(6, 1 - math.floor(math.log10(self.stderr))))
        low, high = f"{self.lower:,.{places}f}", f"{self.upper:,.{places}f}"
        known = (math.isfinite(self.lower), math.isfinite(self.upper))
        ends = {
            (True, True): f", in [{low}, {high}]",
            (True, False): f", at least {low}",
            (False, True): f", at most {high}",
        }
        effective = f"{self.ess:.1f}" if self.ess < 10 else f"{self.ess:,.0f}"
        told = "trusted" if self.trusted else "NOT trusted"
        value = f"{self.value:,.{places}f} ± {self.stderr:,.{places}f}{ends.get(known, '')}"
        return f"{value}, ESS {effective} of {self.n:,}, {told}{': ' + self.why if self.why else ''}"


def skewed(margin: float, n: int) -> str:
    """Why weights are too skewed for their mean's upper end to be trusted, or nothing."""
    if margin <= SKEWED:
        return ""
    return (
        f"the weights are skewed: their mean's upper end lies {margin:.1f} standard errors further out than a normal law's; "
        f"draws that would count for most may be missing among the {n}"
    )


def few(effective: float, n: int, what: str = "weights", least: float = FEW) -> str:
    """Why an effective sample size is too small to be trusted, or nothing."""
    if effective >= least:
        return ""
    return f"the ESS is {effective:.1f} of {n} {what}: too few carry the mean for its error to be known"
