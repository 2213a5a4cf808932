"""E-ARM against cross-entropy where the source can be enumerated: the exact divergence against steps of learning."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from .. import exact
from ..algebra import Tilt
from ..distributions import LSTM, Autoregressive, NGramTable
from ..learn import EARM, fit
from ..model import Distribution
from ..random import Source, generator, normal, substream, uniform
from ..report import Page, Picture, RunDirectory, Section, Table, Text, number, plots
from ..report.directory import Result
from ..space import Tokens
from .recipe import Advance, Bars, Recipe, at_least, finished

_CE, _MOVING, _BATCH = "cross-entropy", "E-ARM", "E-ARM without the moving average"
_KEYS = {_MOVING: "earm", _BATCH: "earm_without_average"}
_APART = 3  # tokens that far apart like to be the same


@final
@dataclass(frozen=True)
class EARMToy:
    """Learn a recurrent network from sequences of an enumerable source, by cross-entropy and with E-ARM added to it."""

    length: int = 6
    """Longest sequence."""
    vocabulary: int = 5
    """Tokens, the end of the sequence among them."""
    agreement: float = 1.0
    """What each pair of equal tokens three apart adds to the source's log-potential: no trigram model can make it."""
    hidden: int = 24
    """Units of the LSTM that learns."""
    examples: tuple[int, ...] = (200, 2000, 64_000)
    """Sequences that are learned from; as many as steps x batch are each seen once at most."""
    batch: int = 64
    """Size of a mini-batch, and draws of the model at each step of E-ARM."""
    steps: int = 1000
    """Steps of Adam."""
    start: int = 250
    """Steps of cross-entropy alone before the E-ARM loss is added."""
    weight: float = 1.0
    """What the E-ARM loss is multiplied by."""
    decay: float = 0.9
    """Of the moving average of the weights' denominator; without it the denominator is that of the step's own draws."""
    rate: float = 0.01
    """Adam's learning rate."""
    repeats: int = 5
    """Sources, each with data and a start of its own; their spread gives the standard errors, so at least 2."""
    looks: int = 20
    """How often the divergence is taken, at even distances of steps."""
    seed: int = 0
    """Where all random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def __post_init__(self):
        at_least(self, length=_APART + 1, vocabulary=3, hidden=1, examples=1, batch=1, steps=2, start=0, repeats=2, looks=1)
        if self.batch > min(self.examples) or self.looks > self.steps or self.vocabulary**self.length > 1 << 20:
            raise ValueError(
                "batch, looks, length: expected no more than the examples, than the steps and than 2^20 sequences, got "
                f"{self.batch}, {self.looks}, {self.vocabulary}^{self.length}"
            )


def source_of(config: EARMToy, source: Source) -> Tilt:
    """p(x) = q(x) exp(a #{t: x_t = x_(t+3)}) / Z, q a trigram model with logits from N(0, 1)."""
    space, v = Tokens(config.length, config.vocabulary, 0), config.vocabulary

    def agreement(x: Tensor) -> Tensor:
        return config.agreement * ((x[..., _APART:] == x[..., :-_APART]) & (x[..., _APART:] != space.eos)).sum(-1).float()

    return Tilt(Autoregressive(NGramTable(v, 2, normal((v + 1, v + 1, v), source)), space), agreement)


@final
class Truth:
    """The source as a table: all sequences, their probabilities, and how far a model is from them."""

    def __init__(self, model: Tilt | Distribution):
        self.model, self.every, self.p = model, exact.states(model.space), exact.probabilities(model).detach()

    def sample(self, n: int, source: Source) -> Int[Tensor, "n length"]:
        """Exact draws, by inversion."""
        below = self.p.cumsum(0)
        place = torch.searchsorted(below, uniform((n,), source) * below[-1], right=True)
        return self.every[place.clamp(max=len(self.p) - 1)]

    @torch.no_grad()
    def divergences(self, q: Autoregressive) -> tuple[float, float]:
        """KL(p || q) and KL(q || p), in nats a sequence, by summing over all sequences."""
        log_q = q(self.every).double()
        away = self.p.log() - log_q
        return (self.p @ away).item(), -(log_q.exp() @ away).item()


@final
class Looks:
    """Told of steps as they are made, it takes the divergences at even distances, the start included."""

    def __init__(self, config: EARMToy, truth: Truth, model: Autoregressive, advance: Advance):
        self.places = {round(k * config.steps / config.looks) for k in range(config.looks + 1)}
        self.truth, self.model, self.advance, self.step = truth, model, advance, 0
        self.curve: list[tuple[int, float, float]] = []

    def __call__(self, made: int) -> None:
        self.step += made
        self.advance(made)
        if self.step in self.places and (not self.curve or self.curve[-1][0] < self.step):
            self.curve.append((self.step, *self.truth.divergences(self.model)))


def objectives(config: EARMToy) -> dict[str, Callable[[Autoregressive], EARM]]:
    """Cross-entropy is E-ARM with weight 0."""
    options = {"start": config.start, "weight": config.weight}
    return {
        _CE: lambda q: EARM(q, weight=0.0),
        _MOVING: lambda q: EARM(q, decay=config.decay, **options),
        _BATCH: lambda q: EARM(q, decay=0.0, **options),
    }


def run(config: EARMToy, directory: RunDirectory, bars: Bars) -> None:
    """For each source: draws its data, and learns from them in every way, from the same start and in the same order."""
    ways = objectives(config)
    with bars.total(config.repeats * len(config.examples) * len(ways) * config.steps) as part:
        for repeat in range(config.repeats):
            place = substream(config.seed, repeat)
            source = generator(place)
            truth = Truth(source_of(config, source))
            entropy = -(truth.p @ truth.p.log()).item()
            directory.record({"kind": "source", "repeat": repeat, "entropy": entropy, "sequences": len(truth.p)})
            for examples in config.examples:
                data = truth.sample(examples, source)
                for name, make in ways.items():
                    advance = part(f"source {repeat + 1}, {examples} examples: {name}")
                    row = learned(config, truth, data, make, place, advance)
                    directory.record({"kind": "learned", "repeat": repeat, "examples": examples, "method": name} | row)


def learned(
    config: EARMToy, truth: Truth, data: Tensor, make: Callable[[Autoregressive], EARM], seed: int, advance: Advance
) -> Result:
    """One model learned; its divergences from the source against steps, and the CPU seconds of learning alone."""
    model = Autoregressive(LSTM(config.vocabulary, config.hidden, seed=seed), Tokens(config.length, config.vocabulary, 0))
    objective = make(model.to(config.device)).to(config.device)
    truth.every, truth.p = truth.every.to(config.device), truth.p.to(config.device)
    looks = Looks(config, truth, model, advance)
    optimiser = torch.optim.Adam(objective.parameters(), lr=config.rate)
    options = {"steps": config.steps, "batch": config.batch, "seed": seed, "log_every": config.steps, "progress": looks}
    began = time.process_time()
    fitted = finished(fit(objective, data.to(config.device), optimiser=optimiser, **options))
    row: Result = {"seconds": time.process_time() - began, "curve": [list(look) for look in looks.curve]}
    return row | {"effective_share": fitted.metrics[-1].get("effective_share")}


def _pair(row: Result, what: str) -> float:
    """KL(p || q) at the end or where it was least; or KL(q || p) at the end."""
    curve = row["curve"]
    return {"last": curve[-1][1], "least": min(look[1] for look in curve), "reverse": curve[-1][2]}[what]


def _mean(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error."""
    x = torch.tensor(values, dtype=torch.float64)
    return x.mean().item(), (x.std() / math.sqrt(len(x))).item() if len(x) > 1 else math.nan


def learned_rows(results: Sequence[Result]) -> list[Result]:
    """The rows of learned models."""
    return [row for row in results if row.get("kind") == "learned"]


def differences(rows: Sequence[Result], method: str, examples: int, what: str, against: str = _CE) -> tuple[float, float]:
    """A divergence of a method minus that of another on the same source and data: mean over sources, and its error."""
    ends = {(row["repeat"], row["method"]): _pair(row, what) for row in rows if row["examples"] == examples}
    return _mean([value - ends[repeat, against] for (repeat, name), value in ends.items() if name == method])


def findings(config: EARMToy, results: Sequence[Result]) -> dict[str, float]:
    """Divergences of E-ARM minus those of cross-entropy, in nats a sequence; and that of cross-entropy."""
    rows, found = learned_rows(results), {}
    whole = {key for key in {(r["examples"], r["repeat"]) for r in rows} if sum(_same(r, key) for r in rows) == 3}
    rows = [row for row in rows if (row["examples"], row["repeat"]) in whole]
    for examples in sorted({row["examples"] for row in rows}):
        own = [_pair(row, "last") for row in rows if row["method"] == _CE and row["examples"] == examples]
        found[f"cross_entropy_kl_{examples}"] = _mean(own)[0]
        for method, key in _KEYS.items():
            for what in ("last", "least", "reverse"):
                found[f"{key}_minus_cross_entropy_{what}_{examples}"] = differences(rows, method, examples, what)[0]
    return found


def _same(row: Result, key: tuple[int, int]) -> bool:
    return (row["examples"], row["repeat"]) == key


def curves(rows: Sequence[Result], column: int) -> dict[str, plots.Line]:
    """The mean over sources at each look, and its standard error."""
    lines = {}
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row["curve"] for row in rows if row["method"] == method]
        points = [_mean([curve[k][column] for curve in own]) for k in range(1, len(own[0]))]
        lines[method] = plots.Line([look[0] for look in own[0][1:]], [m for m, _ in points], [e for _, e in points])
    return lines


def _picture(config: EARMToy, rows: Sequence[Result]) -> Picture:
    panels = [
        plots.Panel("step", label, curves(own, column), f"{examples:,} examples: {name}", log_y=True,
                    marks={"E-ARM starts": config.start})
        for examples in sorted({row["examples"] for row in rows})
        for own in [[row for row in rows if row["examples"] == examples]]
        for column, name, label in ((1, "KL(source || model)", "nats"), (2, "KL(model || source)", "nats"))
    ]  # fmt: skip
    caption = (
        "Exact divergences, by summing over all sequences: means over sources with two-sided bars of one standard error, "
        "most of which is how unlike the sources are. The first is what cross-entropy estimates, the second is how unlikely "
        "the model's own draws are under the source."
    )
    return Picture(plots.panels(panels, height=2.9), caption, "Divergences against steps, a line for each way to learn.")


def table(config: EARMToy, results: Sequence[Result]) -> Table:
    """What each way ends with, beside cross-entropy."""
    rows, cells = learned_rows(results), []
    for examples in sorted({row["examples"] for row in rows}):
        for method in (_CE, *_KEYS):
            own = [row for row in rows if row["examples"] == examples and row["method"] == method]
            if not own:
                continue
            ends = [number(*_mean([_pair(row, what) for row in own])) for what in ("last", "least", "reverse")]
            apart = ["0"] * 3 if method == _CE else [
                number(*differences(rows, method, examples, what)) for what in ("last", "least", "reverse")
            ]  # fmt: skip
            milliseconds = _mean([1e3 * row["seconds"] / config.steps for row in own])[0]
            cells.append([f"{examples:,}", method, *(x for pair in zip(ends, apart) for x in pair), f"{milliseconds:.1f}"])
    columns = ("examples", "learned by", "KL(p || q), last", "minus cross-entropy", "KL(p || q), least",
               "minus cross-entropy", "KL(q || p), last", "minus cross-entropy", "CPU ms a step")  # fmt: skip
    caption = (
        f"Nats a sequence, p the source and q the model, after {config.steps} steps; least is the least at any look. Means "
        f"over {config.repeats} sources and their standard errors; differences are taken on the same source, data, start "
        "and order. Below 0, E-ARM is better. Milliseconds include the exact divergences."
    )
    return Table(columns, cells, caption)


def verdict(config: EARMToy, results: Sequence[Result]) -> str:
    """Where E-ARM is nearer to the source than cross-entropy by more than two standard errors, and what its average does."""
    rows = learned_rows(results)
    every = sorted({row["examples"] for row in rows})

    def compared(what: str, against: str) -> str:
        parts = []
        for examples in every:
            mean, error = differences(rows, _MOVING, examples, what, against)
            word = "as near" if abs(mean) <= 2 * error else "nearer" if mean < 0 else "farther"
            parts.append(f"{word} with {examples:,} examples ({number(mean, error)} nats)")
        return ", ".join(parts)

    return (
        f"KL(source || model) of E-ARM minus that of cross-entropy, apart where it is beyond two standard errors: after the "
        f"last step {compared('last', _CE)}; where each is at its least, {compared('least', _CE)}. With the moving average "
        f"minus without, after the last step: {compared('last', _BATCH)}."
    )


def page(config: EARMToy, directory: RunDirectory) -> Page:
    """The report."""
    results = directory.results()
    rows, found = learned_rows(results), findings(config, results)
    about = Text(
        f"Each source is a trigram model over {config.vocabulary} tokens, tilted by exp({config.agreement:g}) for every "
        f"pair of equal tokens three apart; sequences have at most {config.length} tokens. An LSTM of {config.hidden} units "
        f"learns by Adam, rate {config.rate:g}, mini-batches of {config.batch}. E-ARM is cross-entropy and, from step "
        f"{config.start} on, {config.weight:g} times the loss of equations 4 and 12 to 16, whose gradient flows through the "
        f"last two tokens before each place; its weights' denominator is a moving average, {config.decay:g} of the last, or "
        "the mean of the step's own draws. Where every example is new, cross-entropy descends an unbiased estimate of "
        "KL(source || model) itself; where they are few, it learns them by heart, and E-ARM, which also learns from the "
        "model's own draws, less so. Stopping early is what it must be compared with there: the columns of the least."
    )
    blocks: list[Text | Picture | Table] = [about]
    lead = "No source was finished."
    if found:
        lead = verdict(config, results)
        blocks += [_picture(config, rows), table(config, results)]
    return Page("E-ARM on sources that can be enumerated", lead, [Section("E-ARM paper, equations 4 and 12 to 16", blocks)])


RECIPE = Recipe(
    figure="E-ARM paper, no figure: its language models at a size where the divergence is exact",
    summary="an LSTM learned by cross-entropy and with E-ARM, from sources that can be enumerated",
    presets={
        "smoke": EARMToy(
            length=4, vocabulary=4, hidden=8, examples=(100, 9600), steps=150, start=40, repeats=3, looks=5, rate=0.02
        ),
        "laptop": EARMToy(),
        "paper": EARMToy(length=8, hidden=64, examples=(200, 2000, 20_000, 640_000), steps=10_000, start=2500, repeats=10),
    },
    run=run,
    findings=findings,
    page=page,
)
