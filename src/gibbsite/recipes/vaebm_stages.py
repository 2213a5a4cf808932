"""The two stages of a VAEBM on 25 Gaussians, and how far each is from the truth by integration."""

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from .. import random
from ..algebra import Pullback, Tilt
from ..distributions import LatentNormal, Marginal, OwnScale, SharedScale, twenty_five_gaussians
from ..distributions.latent import log_normal
from ..estimate import divergence, integrate, iwae
from ..learn import (
    ELBO,
    AdamClip,
    Adaptive,
    Average,
    Contrastive,
    Guard,
    Objective,
    Penalised,
    Pushed,
    Replay,
    SpectralNorm,
    fit,
    schedule,
    weight_normalised,
)
from ..models import MLP, perceptron
from ..random import substream
from ..report.directory import Result
from ..sample import MALA, MH, Followed, Independent, trace
from ..space import Real
from .plane import mean_and_error
from .recipe import Advance, at_least, finished

SIDE = 3.5  # the box [-side, side]^2 of all integrals: 17 standard deviations beyond the outer modes
GUARD = Guard(most=30.0)  # nats: of the truth, U between the best and the worst place that chains visit is less
_STREAMS = 16  # of random numbers, of each repeat


@final
@dataclass(frozen=True)
class Gaussians:
    """Learn 25 Gaussians by a VAE and by an energy that tilts it, and integrate how far each is from the truth."""

    latent: int = 2
    """Latent variables of the VAE."""
    width: int = 128
    """Units in each hidden layer, of encoder, decoder and energy."""
    layers: int = 3
    """Hidden layers of each."""
    examples: int = 20_000
    """Training examples."""
    vae_updates: int = 4000
    """Steps of Adam of the first stage, its learning rate falling as a cosine."""
    vae_rate: float = 0.001
    """Adam's learning rate of the first stage."""
    scale: float = 0.1
    """The decoder's standard deviation at the start; it is learned."""
    updates: int = 2000
    """Steps of Adam of the second stage, its learning rate falling as a cosine."""
    rate: float = 0.001
    """Adam's learning rate of the second stage."""
    batch: int = 256
    """Examples in a mini-batch, and chains."""
    steps: int = 10
    """Steps of Metropolis-adjusted Langevin before each update, in the space of the noise, each followed by a jump there."""
    step_size: float = 0.5
    """Their first size; it follows the energy, so that 57 % are accepted."""
    slots: int = 10_000
    """Slots of the replay buffer."""
    reuse: float = 0.6
    """The probability of a chain to start from the buffer, once it has risen."""
    ramp: int = 500
    """Updates in which it rises from 0."""
    spectral: float = 0.05
    """What the sum of the energy's spectral norms is multiplied by in the loss."""
    decay: float = 3e-5
    """Weight decay of the second stage."""
    average: float = 0.99
    """Decay of the moving average of the energy's weights, which is what is measured."""
    nodes: int = 8192
    """Nodes of the integral over latent variables."""
    scramblings: int = 4
    """Independent repeats of that integral: how far they are apart is its error; at least 2."""
    points: int = 241
    """Points a dimension of the integrals over the plane."""
    test: int = 100_000
    """Test samples, beside the integral over endlessly many."""
    repeats: int = 3
    """Runs, each with its own data, weights and chains."""
    seed: int = 0
    """Where all random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def __post_init__(self):
        at_least(self, latent=1, width=1, layers=1, examples=1000, vae_updates=1, updates=10, batch=1, steps=1, slots=1)
        at_least(self, ramp=1, nodes=1, scramblings=2, points=5, test=2, repeats=1)
        least = {name: getattr(self, name) for name in ("vae_rate", "scale", "rate", "step_size")}
        if min(least.values()) <= 0 or min(self.spectral, self.decay) < 0 or self.slots < self.batch:
            raise ValueError(f"expected positive {', '.join(least)}, no negative penalties, and a slot for each chain")


def stream(config: Gaussians, place: int, part: int) -> int:
    """The seed of one part of a repeat, so that none depends on what another drew."""
    return substream(config.seed, _STREAMS * place + part)


def networks(config: Gaussians, place: int) -> tuple[LatentNormal, OwnScale]:
    """The decoder and the encoder, before learning."""
    hidden = (config.width,) * config.layers
    decoder = perceptron(config.latent, 2, hidden, seed=stream(config, place, 0))
    encoder = perceptron(2, 2 * config.latent, hidden, seed=stream(config, place, 1))
    return LatentNormal(SharedScale(decoder, config.scale), config.latent, 2), OwnScale(encoder)


def examples(config: Gaussians, place: int) -> Tensor:
    """The training examples of a repeat."""
    return twenty_five_gaussians().sample(config.examples, seed=stream(config, place, 2))


def energy(config: Gaussians, place: int) -> MLP:
    """V before learning: weights normalised on the first examples."""
    model = MLP(Real(2), (config.width,) * config.layers, seed=stream(config, place, 3))
    weight_normalised(model, examples(config, place)[:1000])
    return model


def learn_vae(config: Gaussians, place: int, data: Tensor, advance: Advance) -> tuple[LatentNormal, OwnScale]:
    """The first stage."""
    generator, encoder = networks(config, place)
    objective = ELBO(generator, encoder).to(config.device)
    optimiser = torch.optim.Adam(objective.parameters(), lr=config.vae_rate)
    options: dict[str, Any] = {"batch": config.batch, "seed": stream(config, place, 4), "progress": advance}
    falling = schedule.Cosine(config.vae_updates, 0.02)
    finished(fit(objective, data, optimiser=optimiser, steps=config.vae_updates, schedule=falling, **options))
    return generator.requires_grad_(False), encoder.requires_grad_(False)


def negatives(config: Gaussians, place: int, generator: LatentNormal) -> Pushed:
    """Langevin in the space of the noise, from a replay buffer of its latent part; its step follows the energy.

    After each of its steps a draw of the noise is proposed: Langevin alone does not pass from mode to mode, so that U drifts
    where its chains do not come, and the likelihood falls although the gap is small.
    """
    noise = generator.noise()

    def kernel(step_size: float) -> Followed:
        return Followed(MALA(step_size), by=MH(Independent(noise)))

    buffer = Replay(
        kernel(config.step_size), noise, kept=config.latent, slots=config.slots, steps=config.steps, most=config.reuse,
        ramp=config.ramp, seed=stream(config, place, 5),
    )  # fmt: skip
    return Pushed(Adaptive(buffer, kernel, start=config.step_size), noise, generator.push)


def learn_energy(
    config: Gaussians, place: int, data: Tensor, source: Pushed, advance: Advance
) -> tuple[MLP, list[dict[str, Any]]]:
    """The second stage, with the averaged weights, and what was logged."""
    model = energy(config, place).to(config.device)
    objective: Objective = Contrastive(model, source)
    if config.spectral:
        objective = Penalised(objective, SpectralNorm(model, seed=stream(config, place, 6)), config.spectral)
    average = Average(model, config.average)
    optimiser = torch.optim.Adam(model.parameters(), lr=config.rate, weight_decay=config.decay)
    fitted = finished(
        fit(
            objective, data, optimiser=optimiser, steps=config.updates, batch=config.batch, average=average,
            clip=AdamClip(), guard=GUARD, schedule=schedule.Cosine(config.updates, 0.02), progress=advance,
            seed=stream(config, place, 7), log_every=max(1, config.updates // 20),
        )
    )  # fmt: skip
    average.copy_to(model)
    return model.requires_grad_(False), fitted.metrics


def below_truth(config: Gaussians, place: int, generator: LatentNormal, model: MLP | None = None) -> Result:
    """KL(truth || q exp V / Z), which is by how much the mean log-likelihood of endless test data is lower, with its error.

    The means over scramblings, their standard error, and the larger of the grids' own errors.
    """
    truth, found = twenty_five_gaussians(dtype=torch.float64).to(config.device), []
    for part in range(config.scramblings):
        q = Marginal(generator, config.nodes, seed=substream(stream(config, place, 8), part)).to(config.device)
        found.append(divergence(truth, q if model is None else Tilt(q, model), -SIDE, SIDE, config.points))
    value, error = mean_and_error([estimate.value for estimate in found])
    untrusted = [estimate.why for estimate in found if not estimate.trusted]
    return {"value": value, "error": max(error, *(estimate.stderr for estimate in found)), "why": "; ".join(untrusted)}


def by_samples(config: Gaussians, place: int, q: Marginal, model: MLP) -> Result:
    """Mean log-likelihoods of test draws under the truth, the VAE and the VAEBM, and the standard errors of differences.

    log Z is the integral of q exp V, and the VAE's bound by importance weights is taken at the first 1000 draws.
    """
    truth, tilt = twenty_five_gaussians(dtype=torch.float64).to(config.device), Tilt(q, model)
    x = truth.sample(config.test, seed=stream(config, place, 9)).to(config.device)
    with torch.no_grad():
        log_p, log_q, log_tilt = truth(x), q(x), tilt(x).double()
    log_z = integrate(tilt, -SIDE, SIDE, config.points)
    away = log_p - log_tilt
    errors = {"vaebm": away.std().item() / config.test**0.5, "vae": (log_p - log_q).std().item() / config.test**0.5}
    means = {"truth": log_p.mean().item(), "vae": log_q.mean().item(), "vaebm": log_tilt.mean().item() - log_z.value}
    return {"test": means, "test_errors": errors, "log_z": log_z.value}


def importance_bound(config: Gaussians, place: int, generator: LatentNormal, encoder: OwnScale, q: Marginal) -> Result:
    """The VAE's log-likelihood of 500 test draws by importance weights from its encoder, and by the integral over h."""
    x = twenty_five_gaussians().sample(500, seed=stream(config, place, 9)).to(config.device)

    def log_weights(x: Tensor, k: int, source: Any) -> Tensor:
        mean, scale = encoder(x)
        h = mean + scale * random.normal((k, *mean.shape), source, mean.dtype)
        return generator(generator.join(h, x.expand(k, *x.shape))) - log_normal(h, mean, scale)

    bound = iwae(log_weights, x, 1000, seed=stream(config, place, 10))
    return {"bound": bound.value, "bound_error": bound.stderr, "integral": q(x).mean().item()}


def draws(config: Gaussians, place: int, generator: LatentNormal, source: Pushed, model: MLP) -> tuple[Tensor, Tensor]:
    """Draws of the VAE, and where the chains' kernel takes their noise in ten times the steps of an update."""
    noise, chains = generator.noise(), source.source
    assert isinstance(chains, Adaptive)
    e = noise.sample(2000, seed=stream(config, place, 11)).to(config.device)
    pulled, seed = Pullback(noise, generator.push, model), torch.Generator(config.device)
    options: dict[str, Any] = {"steps": 10 * config.steps, "thin": 10 * config.steps, "progress": False}
    seed.manual_seed(stream(config, place, 12))
    moved = finished(trace(chains.source.kernel, pulled, e, statistic=lambda e: e, seed=seed, **options))
    with torch.no_grad():
        return generator.push(e), generator.push(moved.values[-1])
