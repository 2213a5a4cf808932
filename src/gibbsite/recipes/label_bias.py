"""Label bias: a locally normalised bigram model against a globally normalised one (EBM-SLP, section 4.1.2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import exact
from ..distributions import Autoregressive, NGramTable
from ..learn import improved_scaling
from ..model import Potential
from ..models import LogLinear
from ..report import Page, Picture, RunDirectory, Section, Table, Text, number, plots
from ..report.directory import Result
from ..report.page import MISSING
from ..space import Categorical, Tokens
from .recipe import Bars, Recipe, at_least

_WORDS = ("Tom", "John", "Alice", "likes", "like", "tea")
_TRAINING = ("Tom likes tea", "John likes tea", "Alice like tea")
_TESTS = ("Alice likes tea", "Tom like tea")
_SPACE = Categorical(3, len(_WORDS))
_END = len(_WORDS)  # ends a sentence of the local model
_LOG_Z = 19.98  # this and the next two lines: what the monograph prints
_SCORES = {"Alice likes tea": -7.06, "Tom like tea": -7.79}
_WEIGHTS = {"Tom": 2.88, "Alice": 2.53, "likes tea": 5.21, "like tea": 4.12, "tea": 5.18}


@final
@dataclass(frozen=True)
class LabelBias:
    """Score two sentences by two bigram models of three others: one normalised word by word, one as a whole."""

    epsilon: float = 0.001
    """Probability of a transition that the training sentences never show, in the locally normalised model."""
    sweeps: tuple[int, ...] = (1, 3, 10, 30, 100, 300, 1000, 3000)
    """Sweeps of improved iterative scaling after which the globally normalised model is looked at."""
    seed: int = 0
    """Nothing is drawn: all is by enumeration."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def __post_init__(self):
        at_least(self, sweeps=1)
        if not 0 < self.epsilon < 1 / (2 * _END) or list(self.sweeps) != sorted(set(self.sweeps)):
            raise ValueError(
                f"epsilon, sweeps: expected epsilon in (0, {1 / (2 * _END):.3g}) and increasing sweeps, got {self.epsilon} "
                f"and {self.sweeps}"
            )


def ids(*sentences: str) -> Int[Tensor, "sentences 3"]:
    """Sentences as places in the vocabulary."""
    return torch.tensor([[_WORDS.index(word) for word in sentence.split()] for sentence in sentences])


def features(x: Int[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 9"]:
    """f_1 to f_9 of eq. 4.9."""
    tom, john, alice, likes, like, tea = range(6)
    a, b, c = x.unbind(-1)
    first = [a == tom, a == john, a == alice]
    middle = [(a == tom) & (b == likes), (a == john) & (b == likes), (a == alice) & (b == like)]
    last = [(b == likes) & (c == tea), (b == like) & (c == tea), c == tea]
    return torch.stack([*first, *middle, *last], -1).double()


def local_model(epsilon: float) -> Autoregressive:
    """The bigram model: a transition never seen has probability epsilon, those seen share the rest as they are counted."""
    count = torch.zeros(_END + 2, _END + 1, dtype=torch.float64)  # from: the words, the end, the start
    for sentence in ids(*_TRAINING).tolist():
        for old, new in zip([_END + 1, *sentence], [*sentence, _END]):
            count[old, new] += 1
    count[count.sum(1) == 0] = 1
    unseen = (count == 0).to(count)
    p = count / count.sum(1, keepdim=True) * (1 - epsilon * unseen.sum(1, keepdim=True)) + epsilon * unseen
    return Autoregressive(NGramTable(_END + 1, 1, p.log()), Tokens(4, _END + 1, _END))


def local_scores(model: Autoregressive, *sentences: str) -> list[float]:
    """log q of whole sentences, their ends included."""
    x = ids(*sentences)
    with torch.no_grad():
        return model(torch.cat((x, x.new_full((len(x), 1), _END)), 1)).tolist()


def printed_model() -> LogLinear:
    """The monograph's weights: five are printed, Tom's are John's, who stands in the same places, and two are in a drawing.

    These two are what makes the training sentences equally probable and log Z the printed one.
    """
    w = _WEIGHTS
    rest = math.exp(w["Alice"] + w["likes tea"] + w["tea"]) + 2 * math.exp(w["Tom"] + w["like tea"] + w["tea"])
    seen = math.log((math.exp(_LOG_Z) - rest) / 3)
    likes, like = seen - w["Tom"] - w["likes tea"] - w["tea"], seen - w["Alice"] - w["like tea"] - w["tea"]
    values = [w["Tom"], w["Tom"], w["Alice"], likes, likes, like, w["likes tea"], w["like tea"], w["tea"]]
    return LogLinear(_SPACE, features, torch.tensor(values, dtype=torch.float64))


def log_z_of_six(model: LogLinear) -> float:
    """log Z over a name, likes or like, and tea, as the monograph sums it."""

    def six(x: Tensor) -> Tensor:
        a, b, c = x.unbind(-1)
        inside = (a < 3) & ((b == 3) | (b == 4)) & (c == 5)
        return torch.where(inside, model(x), -torch.inf)

    with torch.no_grad():
        return exact.log_z(Potential(six, _SPACE)).item()


def global_row(model: LogLinear, log_z: float) -> Result:
    """What a globally normalised model gives the sentences."""
    with torch.no_grad():
        scores = (model(ids(*_TESTS, *_TRAINING)) - log_z).tolist()
    return {"log_z": log_z, "scores": dict(zip((*_TESTS, *_TRAINING), scores)), "gap": scores[0] - scores[1]}


def run(config: LabelBias, directory: RunDirectory, bars: Bars) -> None:
    """Scores by the local model, by the printed weights, and by weights fitted here, sweep after sweep."""
    with bars.total(config.sweeps[-1]) as part:
        advance = part("improved iterative scaling")
        sentences = (*_TESTS, *_TRAINING)
        scores = dict(zip(sentences, local_scores(local_model(config.epsilon), *sentences)))
        gap = scores[_TESTS[0]] - scores[_TESTS[1]]
        directory.record({"kind": "local", "epsilon": config.epsilon, "scores": scores, "gap": gap})
        printed = printed_model()
        everything = exact.log_z(printed).item()
        directory.record({"kind": "printed", "log_z_of_all": everything} | global_row(printed, log_z_of_six(printed)))
        learned = LogLinear(_SPACE, features, torch.zeros(9, dtype=torch.float64)).to(config.device)
        targets, done = features(ids(*_TRAINING)).mean(0).to(config.device), 0
        for sweeps in config.sweeps:
            improved_scaling(learned, targets, sweeps=sweeps - done, tolerance=1e-12)
            advance(sweeps - done)
            done = sweeps
            directory.record({"kind": "learned", "sweeps": sweeps} | _on_cpu(learned))


def _on_cpu(model: LogLinear) -> Result:
    copy = LogLinear(_SPACE, features, model.weights.detach().cpu())
    return global_row(copy, exact.log_z(copy).item())


def findings(config: LabelBias, results: Sequence[Result]) -> dict[str, float]:
    """The gap log P(Alice likes tea) - log P(Tom like tea) of each model, and the printed numbers found again."""
    found: dict[str, float] = {}
    for row in results:
        if row["kind"] == "local":
            found["local_gap"] = row["gap"]
            exactly = math.log((1 - 4 * row["epsilon"]) / 3 * row["epsilon"]) + 2 * math.log1p(-6 * row["epsilon"])
            found["local_score_minus_exact"] = row["scores"][_TESTS[0]] - exactly
        if row["kind"] == "printed":
            found |= {"log_z": row["log_z"], "log_z_of_all_216": row["log_z_of_all"], "global_gap": row["gap"]}
            found |= {f"score_{name.replace(' ', '_').lower()}": row["scores"][name] for name in _TESTS}
    learned = [row for row in results if row["kind"] == "learned"]
    if learned:
        found["least_gap_learned"] = min(row["gap"] for row in learned)
        found["last_score_learned"] = learned[-1]["scores"][_TESTS[0]]
    return found


def _picture(local: Result, printed: Result, learned: Sequence[Result]) -> Picture:
    log_z, sweeps = [row["log_z"] for row in learned], [row["sweeps"] for row in learned]
    lines = {name: plots.Line(log_z, [row["scores"][name] for row in learned]) for name in _TESTS}
    points = {f"{name}, printed": plots.Line([_LOG_Z], [score]) for name, score in _SCORES.items()}
    gaps = {"globally normalised": plots.Line(sweeps, [row["gap"] for row in learned])}
    gaps |= {"locally normalised": plots.Line(sweeps, [local["gap"]] * len(sweeps))}
    level = {"printed": plots.Line([sweeps[0], sweeps[-1]], [printed["gap"]] * 2)}
    contents = [
        plots.Panel("log Z", "log P", lines, "While the global model learns", points=points),
        plots.Panel("sweeps of iterative scaling", "difference of log P", gaps, "Alice likes tea against Tom like tea",
                    curves=level, log_x=True),
    ]  # fmt: skip
    caption = (
        "Left: scores of the test sentences by the globally normalised model, from zero weights on, and what the monograph "
        "prints at log Z = 19.98. Right: above 0 the correct sentence is the more probable one; the locally normalised "
        "model is at 0 whatever its epsilon."
    )
    alt = "Left, two falling lines and two points; right, the global model's gap above 0 and the local model's at 0."
    return Picture(plots.panels(contents, height=3.4), caption, alt)


def _table(local: Result, printed: Result, learned: Result | None) -> Table:
    cells = [
        [
            name,
            number(local["scores"][name]),
            f"{_SCORES[name]:.2f}" if name in _SCORES else MISSING,
            f"{printed['scores'][name]:.4f}",
            f"{learned['scores'][name]:.4f}" if learned else MISSING,
        ]
        for name in (*_TESTS, *_TRAINING)
    ]
    cells += [["log Z", "0", f"{_LOG_Z:.2f}", f"{printed['log_z']:.4f}", f"{learned['log_z']:.4f}" if learned else MISSING]]
    caption = (
        "Logarithms of probabilities; the test sentences come first. The printed weights are rounded to 0.005 each, so that "
        "a score made of them may be 0.02 off."
    )
    after = f"fitted here, {learned['sweeps']} sweeps" if learned else "fitted here"
    return Table(("sentence", "local", "global, printed", "global, printed weights", f"global, {after}"), cells, caption)


def page(config: LabelBias, directory: RunDirectory) -> Page:
    """The report."""
    results = directory.results()
    local = next((row for row in results if row["kind"] == "local"), None)
    printed = next((row for row in results if row["kind"] == "printed"), None)
    learned = [row for row in results if row["kind"] == "learned"]
    lead, blocks = "Nothing was finished.", []
    if local and printed:
        ratio = math.exp(printed["gap"])
        lead = (
            f"The correct sentence is {ratio:.2f} times as probable as the wrong one where the model is normalised as a "
            f"whole, and {math.exp(local['gap']):.2f} times where it is normalised word by word."
        )
    about = Text(
        f"Training sentences: {', '.join(_TRAINING)}. A bigram model gives tea all its probability after likes and after "
        "like, however often each was seen: what follows a mistake is as sure as what follows no mistake. The model that is "
        "normalised as a whole has the same bigrams as features. Maximum likelihood has no finite weights here: it gives "
        "the three training sentences a third each, so that the test sentences are in the end left with nothing. The "
        "monograph does not say where it stopped, nor with which vocabulary, and its text has five of nine weights; the "
        "others, which are in a drawing, are set here so that the training sentences are equally probable and log Z is as "
        "printed: what is checked is that the two scores follow. All sums are over the 216 sequences of three of six words, "
        "log Z of the printed weights over the six sentences that the monograph sums."
    )
    if local and printed:
        blocks = [*([_picture(local, printed, learned)] if learned else []), _table(local, printed, (learned or [None])[-1])]
    return Page("Label bias", lead, [Section("EBM-SLP, section 4.1.2", [about, *blocks])])


RECIPE = Recipe(
    figure="EBM-SLP, section 4.1.2: the example of label bias, figures 4.2 and 4.3",
    summary="two sentences scored by a locally and a globally normalised bigram model",
    presets={"smoke": LabelBias(), "laptop": LabelBias()},
    run=run,
    findings=findings,
    page=page,
)
