"""VAEBM on the 25 Gaussians: a VAE, then an energy learned in the space of its noise; log-likelihood by integration."""

import time
from collections.abc import Sequence
from typing import Any

import torch

from ..algebra import Tilt
from ..distributions import Marginal, twenty_five_gaussians
from ..learn import Adaptive, Diverged
from ..report import Page, Picture, RunDirectory, Section, Table, Text, number, plots
from ..report.directory import Result
from ..report.page import MINUS, MISSING
from ..sample import MALA
from .plane import density, mean_and_error, modes_reached
from .recipe import Bars, Recipe
from .trained import Trained
from .vaebm_stages import (
    GUARD,
    Gaussians,
    below_truth,
    by_samples,
    draws,
    energy,
    examples,
    importance_bound,
    learn_energy,
    learn_vae,
    negatives,
    networks,
    stream,
)

_TARGET, _PAPER_VAEBM, _PAPER_VAE = 0.25, 0.40, 1.87  # nats below the truth
_SHOWN = 2.6  # half the side of the pictures


def run(config: Gaussians, directory: RunDirectory, bars: Bars) -> None:
    """Learns both stages with each seed, integrates, and keeps the first model; goes on after the last repeat recorded."""
    done = {row["place"] for row in directory.results() if row.get("kind") == "repeat"}
    with bars.total(config.repeats * (config.vae_updates + config.updates)) as part:
        for place in sorted(set(range(config.repeats)) - done):
            directory.record({"kind": "repeat", "place": place} | repeat(config, place, directory, part))


def repeat(config: Gaussians, place: int, directory: RunDirectory, part: Any) -> Result:
    """One repeat: how far the VAE and the VAEBM are from the truth; of a run that diverged, the VAE alone."""
    began, data = time.process_time(), examples(config, place)
    generator, encoder = learn_vae(config, place, data, part(f"VAE, repeat {place + 1}"))
    seconds = {"VAE": time.process_time() - began}
    q = Marginal(generator, config.nodes, seed=stream(config, place, 13)).to(config.device)
    row: Result = {"vae": below_truth(config, place, generator), "scale": q.scales[0, 0].item()}
    row |= importance_bound(config, place, generator, encoder, q)
    source = negatives(config, place, generator).to(config.device)
    began = time.process_time()
    try:
        model, lines = learn_energy(config, place, data, source, part(f"VAEBM, repeat {place + 1}"))
    except Diverged as error:
        return row | {"diverged": str(error)}
    seconds["energy"] = time.process_time() - began
    row |= {"vaebm": below_truth(config, place, generator, model), "seconds": seconds}
    row |= by_samples(config, place, q, model)
    before, after = draws(config, place, generator, source, model)
    truth, tilt = twenty_five_gaussians(), Tilt(q, model)
    row["modes"] = {name: modes_reached(x, truth) for name, x in (("vae", before), ("vaebm", after))}
    if place == 0:
        directory.save_samples("draws", {"vae": before, "vaebm": after})
        directory.save_samples("densities", {"vae": density(q, _SHOWN), "vaebm": density(tilt, _SHOWN)})
        directory.save_model(tilt)
    assert isinstance(source.source, Adaptive)
    return row | {"step_size": source.source.step_size, "curve": [[x["step"], x["gap"], x["acceptance"]] for x in lines]}


def findings(config: Gaussians, results: Sequence[Result]) -> dict[str, float]:
    """Nats below the truth, means over repeats, and how far the test samples are from the integral in standard errors."""
    rows = repeats(results)
    sound = [row for row in rows if "vaebm" in row]
    found = {"diverged": float(len(rows) - len(sound))} if rows else {}
    if rows:
        found["vae_below_truth"] = mean_and_error([row["vae"]["value"] for row in rows])[0]
    if sound:
        values = [row["vaebm"]["value"] for row in sound]
        found |= {"vaebm_below_truth": mean_and_error(values)[0], "vaebm_worst_below_truth": max(values)}
        found["vaebm_gain"] = mean_and_error([row["vae"]["value"] - row["vaebm"]["value"] for row in sound])[0]
        for name in ("vae", "vaebm"):
            z = [(row["test"]["truth"] - row["test"][name] - row[name]["value"]) / row["test_errors"][name] for row in sound]
            found[f"{name}_test_z"] = max(z, key=abs)
    return found


def repeats(results: Sequence[Result]) -> list[Result]:
    """The rows of repeats, those that diverged among them."""
    return [row for row in results if row.get("kind") == "repeat"]


def _table(config: Gaussians, rows: Sequence[Result]) -> Table:
    cells = []
    for row in rows:
        test, seconds = row.get("test", {}), row.get("seconds", {})
        below = [number(row[n]["value"], row[n]["error"]) if n in row else "diverged" for n in ("vae", "vaebm")]
        times = "; ".join(f"{name} {value:.0f}" for name, value in seconds.items())
        cells.append([str(row["place"] + 1), *below, *(number(test.get(n)) for n in ("truth", "vae", "vaebm")), times])
    caption = (
        "Nats by which the mean log-likelihood of endlessly many test samples is below the truth's: KL(truth || model) by "
        f"integration, and the error of that integration. Beside it the mean log-likelihoods of {config.test} test samples."
    )
    columns = ("repeat", "VAE below", "VAEBM below", "truth, test", "VAE, test", "VAEBM, test", "CPU seconds")
    return Table(columns, cells, caption)


def _checks(rows: Sequence[Result]) -> Table:
    cells = []
    for row in rows:
        modes = [f"{m[0]} of 25; {m[1]:.1%}" for m in row["modes"].values()] if "modes" in row else [MISSING] * 2
        doubts = [row[name]["why"] for name in ("vae", "vaebm") if name in row and row[name]["why"]]
        bound = number(row["bound"], row["bound_error"])
        cells.append([str(row["place"] + 1), bound, number(row["integral"]), *modes, "; ".join(doubts) or "none"])
    caption = (
        "The VAE's log-likelihood of 500 test samples by 1000 importance weights from its encoder, a lower bound, beside "
        "the integral; modes that 2000 draws reach, and the share of draws within 3 standard deviations of one; what casts "
        "doubt on the integrals."
    )
    columns = ("repeat", "importance bound", "integral", "VAE's draws", "VAEBM's draws", "doubts")
    return Table(columns, cells, caption)


def _pictures(config: Gaussians, directory: RunDirectory, rows: Sequence[Result]) -> list[Picture]:
    x, values = directory.samples("draws"), directory.samples("densities")
    curves = {f"repeat {row['place'] + 1}": row["curve"] for row in rows if "curve" in row}
    shown, box = [], (-_SHOWN, _SHOWN)
    if x and values:
        truth = twenty_five_gaussians(dtype=torch.float64)
        densities = {"truth": density(truth, _SHOWN), "VAE": values["vae"], "VAEBM": values["vaebm"]}
        clouds = {"truth": truth.sample(2000, seed=0), "VAE": x["vae"], "VAEBM": x["vaebm"]}
        of = "of the truth, the VAE and the VAEBM."
        shown.append(Picture(plots.densities(densities, box), "Densities by integration, on one scale.", f"Densities {of}"))
        note = f"2000 draws; those of the VAEBM are the VAE's after {10 * config.steps} steps of Langevin in their noise."
        shown.append(Picture(plots.clouds(clouds, box), note, f"Draws {of}"))
    if curves:
        panels = []
        for place, y in ((1, f"U(negatives) {MINUS} U(data)"), (2, "acceptance")):
            lines = {name: plots.Line([c[0] for c in curve], [c[place] for c in curve]) for name, curve in curves.items()}
            panels.append(plots.Panel("update", y, lines))
        shown.append(Picture(plots.panels(panels), "The second stage.", "Gap and acceptance against updates."))
    return shown


def page(config: Gaussians, directory: RunDirectory) -> Page:
    """The report."""
    results = directory.results()
    rows, found, lead = repeats(results), findings(config, results), "No repeat was finished."
    if "vaebm_below_truth" in found:
        value, error = mean_and_error([row["vaebm"]["value"] for row in rows if "vaebm" in row])
        lead = (
            f"VAEBM's test log-likelihood is {number(value, error)} nats below the truth's (its VAE's "
            f"{found['vae_below_truth']:.2f}); {_TARGET:g} was aimed at; the paper: {_PAPER_VAEBM:.2f}, {_PAPER_VAE:g}."
        )
    about = Text(
        f"25 normal laws of standard deviation 0.084 on a 5 x 5 grid of spacing 1; {config.examples} examples. VAE: "
        f"{config.latent} latent variables, {config.layers} hidden layers of {config.width}, a decoder with one learned "
        f"scale, {config.vae_updates} updates. Energy: {config.layers} hidden layers of {config.width}, weight "
        f"normalisation, spectral penalty {config.spectral:g}, {config.updates} updates, {config.steps} Langevin steps of "
        f"{config.batch} chains before each, each step followed by a proposal from the noise, which the paper has not. "
        f"log q(x) is the mean over {config.nodes} nodes of a scrambled net of latent variables, {config.scramblings} times "
        f"anew; the integrals over x are on a grid of {config.points} x {config.points} points. A repeat whose gap between "
        f"data and negatives stays above {GUARD.most:g} nats has diverged, and has no result. The paper has 20 latent "
        "variables and 4 layers of 256."
    )
    blocks: list[Text | Picture | Table] = [about]
    if rows:
        blocks += [_table(config, rows), *_pictures(config, directory, rows), _checks(rows)]
    return Page("VAEBM on 25 Gaussians", lead, [Section("VAEBM paper, section 5.4", blocks)])


def _model(config: Gaussians) -> Tilt:
    """The first repeat's q exp V, before learning."""
    return Tilt(Marginal(networks(config, 0)[0], config.nodes, seed=stream(config, 0, 13)), energy(config, 0))


_LAPTOP = Gaussians()
RECIPE = Recipe(
    figure="VAEBM paper, section 5.4 and figure 4: test log-likelihood on 25 Gaussians",
    summary="VAE and VAEBM on 25 Gaussians, log-likelihoods by numerical integration",
    presets={
        "smoke": Gaussians(
            width=32, layers=2, examples=2000, vae_updates=500, updates=200, batch=64, steps=5, slots=500, ramp=50,
            scale=0.5, rate=0.002, nodes=1024, scramblings=2, points=121, test=2000, repeats=1,
        ),
        "laptop": _LAPTOP,
        "paper": Gaussians(latent=20, width=256, layers=4, vae_updates=50_000, updates=25_000, nodes=65_536),
    },
    run=run,
    findings=findings,
    page=page,
    trained=Trained(build=_model, data=lambda config: examples(config, 0), kernel=lambda config: MALA(0.08)),
)  # fmt: skip
