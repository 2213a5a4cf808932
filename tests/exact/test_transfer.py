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
        gb.exact.strip_log_z(4, 13, 0.1)


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
