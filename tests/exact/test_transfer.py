"""Kaufman's formula and transfer matrices against the published values and enumeration."""

import math

import pytest
import torch

import gibbsite as gb

CRITICAL = math.log(1 + math.sqrt(2)) / 2


@pytest.mark.parametrize(
    ("side", "log_z", "energy", "heat"),
    [
        (4, 0.970119716172, -1.56562378764, 0.783266825929),
        (8, 0.939715324829, -1.49158910744, 1.14555923989),
        (16, 0.932196314981, -1.45306485281, 1.4987049594),
        (32, 0.930320390184, -1.43365846615, 1.84676759004),
        (64, 0.929851631694, -1.42393838983, 2.19221139314),
    ],
)
def test_the_critical_torus(side, log_z, energy, heat):
    K = torch.tensor(CRITICAL, dtype=torch.float64, requires_grad=True)
    value = gb.exact.kaufman_log_z(side, side, K)
    (slope,) = torch.autograd.grad(value, K, create_graph=True)
    (curvature,) = torch.autograd.grad(slope, K)
    sites = side**2
    assert value.item() / sites == pytest.approx(log_z, abs=1e-11)
    assert -slope.item() / sites == pytest.approx(energy, abs=1e-10)
    assert CRITICAL**2 * curvature.item() / sites == pytest.approx(heat, abs=1e-8)


@pytest.mark.parametrize(
    ("side", "theta", "log_z"),
    [
        (10, 0.1, 73.4530978038),
        (10, 0.2, 88.1877006155),
        (10, 0.25, 103.272975418),
        (10, 0.5, 200.727975551),
        (40, 0.1, 1175.24929964),
        (40, 0.2, 1406.98487082),
        (40, 0.25, 1641.9616475),
    ],
)
def test_the_gwg_papers_lattices(side, theta, log_z):
    assert gb.exact.kaufman_log_z(side, side, 2 * theta).item() == pytest.approx(log_z, rel=1e-11)


@pytest.mark.parametrize("periodic", [True, False])
def test_strips_and_tori_against_enumeration(periodic, double):
    model = gb.models.Ising.lattice((4, 3), coupling=0.37, field=0.21, periodic=periodic)
    assert gb.exact.strip_log_z(4, 3, 0.37, 0.21, periodic).item() == pytest.approx(gb.exact.log_z(model).item(), abs=1e-10)
    if periodic:
        free = gb.models.Ising.lattice((4, 3), coupling=0.37)
        assert gb.exact.kaufman_log_z(4, 3, 0.37).item() == pytest.approx(gb.exact.log_z(free).item(), abs=1e-10)


def test_strip_and_kaufman_agree_beyond_enumeration():
    assert gb.exact.strip_log_z(20, 8, 0.5).item() == pytest.approx(gb.exact.kaufman_log_z(20, 8, 0.5).item(), abs=1e-9)


def test_what_the_formulas_do_not_cover_is_refused():
    with pytest.raises(ValueError, match="positive number"):
        gb.exact.kaufman_log_z(4, 4, -0.1)
    with pytest.raises(ValueError, match="1 to 12 sites"):
        gb.exact.strip_log_z(14, 13, 0.1)


@pytest.mark.parametrize("sides", [(3, 3), (3, 4), (4, 3), (5, 3)])
@pytest.mark.parametrize("field", [0.0, 0.2])
@pytest.mark.parametrize("coupling", [-0.3, -8.0, -20.0])
def test_antiferromagnetic_tori_against_enumeration(sides, coupling, field):
    """Round an odd side every row is frustrated; the mutant is the sum of signed eigenvalues, which cancel."""
    value = gb.exact.strip_log_z(*sides, coupling, field)
    model = gb.models.Ising.lattice(sides, coupling=coupling, field=field, dtype=torch.float64)
    assert value.item() == pytest.approx(gb.exact.log_z(model).item(), rel=1e-13)
    if sides == (3, 3) and coupling == -8.0:
        s = 2.0 * gb.exact.states(gb.Binary(3)).double() - 1
        within = (coupling * (s * s.roll(1, 1)).sum(1) + field * s.sum(1)) / 2
        signed = torch.linalg.eigvalsh(torch.exp(within[:, None] + coupling * s @ s.T + within)).pow(3).sum().log()
        assert not abs(signed - value) < 1e-2


def test_sides_may_be_swapped_and_known_values():
    """303.3036 is by a transfer matrix of the even side, whose trace has no negative terms."""
    assert gb.exact.strip_log_z(11, 10, -1.5).item() == pytest.approx(303.3036, abs=5e-5)
    for sides, coupling, field, wanted in [((3, 4), -20, 0.2, 321.79), ((3, 4), -5, 0.2, 81.79), ((3, 3), -8, 0.2, 52.66)]:
        one, other = (gb.exact.strip_log_z(*way, coupling, field).item() for way in (sides, sides[::-1]))
        assert one == other == pytest.approx(wanted, abs=5e-3)
    assert gb.exact.strip_log_z(4, 20, 0.3).item() == pytest.approx(gb.exact.kaufman_log_z(4, 20, 0.3).item(), rel=1e-12)


def test_odd_antiferromagnets_can_be_differentiated():
    """-d log Z / dK is the mean of sum_edges s s', by enumeration; the field's is the mean of sum s."""
    K, h = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (-0.7, 0.3))
    slopes = torch.autograd.grad(gb.exact.strip_log_z(3, 3, K, h), (K, h))
    model = gb.models.Ising.lattice(3, coupling=-0.7, field=0.3, dtype=torch.float64)
    every, p = gb.exact.states(model.space), gb.exact.probabilities(model).detach()
    spins = (2.0 * every.double() - 1).sum(-1)
    bonds = (gb.exact.potentials(model) - 0.3 * spins) / -0.7
    assert slopes[0].item() == pytest.approx(float(p @ bonds), abs=1e-12)
    assert slopes[1].item() == pytest.approx(float(p @ spins), abs=1e-12)


@pytest.mark.parametrize("coupling", [1e-6, 400.0, 1e5])
def test_kaufman_at_very_weak_and_very_strong_couplings(coupling):
    """Independent spins, (2 cosh^2 K)^12 and corrections of K^3; two ground states, all others less by exp(-8 K)."""
    limit = 12 * math.log(2) + 24 * math.log(math.cosh(coupling)) if coupling < 1 else 24 * coupling + math.log(2)
    assert gb.exact.kaufman_log_z(3, 4, coupling).item() == pytest.approx(limit, rel=1e-14)


@pytest.mark.parametrize("sides", [(2, 4), (4, 2), (1, 5), (2, 2)])
def test_short_periodic_sides_are_refused(sides):
    """The formula would couple a pair twice, which is another model than Ising.lattice's."""
    for formula in (gb.exact.kaufman_log_z, gb.exact.strip_log_z):
        with pytest.raises(ValueError, match="at least 3 in a periodic direction"):
            formula(*sides, 0.3)


@pytest.mark.parametrize("sides", [(1, 1), (2, 2), (1, 4), (5, 2)])
def test_open_strips_may_be_short(sides, double):
    model = gb.models.Ising.lattice(sides, coupling=0.3, field=-0.2, periodic=False)
    value = gb.exact.strip_log_z(*sides, 0.3, -0.2, periodic=False)
    assert value.item() == pytest.approx(gb.exact.log_z(model).item(), abs=1e-12)


@pytest.mark.parametrize(
    ("coupling", "field", "periodic"), [(50.0, 1000.0, False), (50.0, 1000.0, True), (-50.0, 0.0, False)]
)
def test_strong_couplings_and_fields_stay_finite(coupling, field, periodic):
    edges = 2 * 10 * 8 if periodic else 10 * 7 + 9 * 8
    ground = abs(coupling) * edges + field * 80  # all other states weigh less by a factor of exp(-100) at least
    states = 1 if field else 2
    value = gb.exact.strip_log_z(10, 8, coupling, field, periodic).item()
    assert value == pytest.approx(ground + math.log(states), rel=1e-12)


def test_sizes_and_couplings_must_be_single_numbers():
    for sides in ((0, 4), (4.0, 4), (4, 0)):
        for formula in (gb.exact.kaufman_log_z, gb.exact.strip_log_z):
            with pytest.raises(ValueError, match="expected a positive integer"):
                formula(*sides, 0.3)
    for formula in (gb.exact.kaufman_log_z, gb.exact.strip_log_z):
        with pytest.raises(ValueError, match=r"coupling: expected one number, got shape \(2,\)"):
            formula(4, 4, torch.tensor([0.1, 0.2]))
