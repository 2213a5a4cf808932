"""FSDP2: a potential whose weights are cut in two learns, samples, clips, averages and resumes as a whole one does."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.distributed.fsdp import fully_shard

import gibbsite as gb

from .processes import together

L, S, M = gb.learn, gb.sample, gb.models
ROUNDING = 1e-10  # of some dozen updates in double precision, whose sums are taken in another order


def objective(cut):
    """A perceptron beside a normal law: its weights are cut, the number that scales the normal law is not."""
    net = M.MLP(gb.Real(2), (8, 8), seed=0).double()
    if cut:
        fully_shard(net)
    base = gb.distributions.Normal.standard(2).double()
    scale = torch.nn.Parameter(torch.ones((), dtype=torch.float64))
    potential = Scaled(base, net, scale)
    x = torch.randn(12, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return L.Contrastive(potential, L.Persistent(S.MALA(0.3), L.shard(x), steps=2))


class Scaled(gb.Model):
    def __init__(self, base, net, scale):
        super().__init__()
        self.space, self.base, self.net, self.scale = base.space, base, net, scale

    def forward(self, x):
        return self.scale * self.base(x) + self.net(x)


def data():
    return torch.randn(48, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64) + 0.5


def learn(rank, folder, name, cut, steps=20, mutant=""):
    if mutant:
        L.session.gradients.averaged = lambda objective, group: None
    learner = objective(cut)
    average = L.Average(learner.model, 0.9)
    optimiser = torch.optim.Adam(learner.parameters(), lr=0.01)
    how = {"steps": steps, "batch": 12, "seed": 5, "clip": 0.5, "save_every": 5, "log_every": 5}
    fitted = L.fit(learner, data(), optimiser=optimiser, average=average, out=folder / name, **how)
    tensors = {key: whole(value) for key, value in learner.state_dict().items()}
    mean = {f"mean.{key}": value for key, value in average.weights.items() if not cut}
    gradients = {f"{line['step']}.gradient": torch.tensor(line["gradient"]) for line in fitted.metrics}
    save_file({**tensors, **mean, **gradients}, folder / f"{name}{rank}.safetensors")


def whole(value):
    return (value.full_tensor() if isinstance(value, torch.distributed.tensor.DTensor) else value).contiguous()


def found(folder, name):
    return [load_file(folder / f"{name}{rank}.safetensors") for rank in range(2)]


def apart(one, two):
    return max(float((one[key] - two[key]).abs().max()) for key in one.keys() & two.keys())


@pytest.fixture(scope="module")
def ddp(tmp_path_factory):
    """What two processes learn that hold whole weights."""
    folder = tmp_path_factory.mktemp("ddp")
    together(learn, 2, folder, "ddp", False)
    return found(folder, "ddp")


def test_cut_weights_learn_what_whole_ones_do(ddp, tmp_path):
    together(learn, 2, tmp_path, "cut", True)
    for one, two in zip(found(tmp_path, "cut"), ddp, strict=True):
        assert apart(one, two) < ROUNDING
    together(learn, 2, tmp_path, "mutant", True, 20, "whole gradients beside cut ones are not averaged")
    assert apart(found(tmp_path, "mutant")[0], ddp[0]) > 1e-4


def test_a_run_of_cut_weights_that_is_stopped_goes_on_to_the_same_bits(tmp_path):
    together(learn, 2, tmp_path, "whole", True)
    together(learn, 2, tmp_path, "parts", True, 10)
    together(learn, 2, tmp_path, "parts", True)
    for one, two in zip(found(tmp_path, "parts"), found(tmp_path, "whole"), strict=True):
        assert one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)


MODELS = {
    "bits": (lambda: M.MLP(gb.Binary(10), (16,), seed=0), S.MH(S.Informed())),
    "reals": (lambda: M.MLP(gb.Real(2), (16,), seed=0), S.MALA(0.3)),  # whole, its score would be taken by a compiled loop
}


def sample(rank, folder, name, cut):
    net, kernel = MODELS[name][0](), MODELS[name][1]
    x = net.space.uniform() if name == "bits" else gb.distributions.Normal.standard(2)
    x = L.shard(x.sample(8, seed=0))
    model = fully_shard(net) if cut else gb.Potential(net, net.space)
    chain = gb.run(kernel, model, x, steps=20, seed=rank)
    save_file({"x": chain.samples}, folder / f"{cut}{rank}.safetensors")


@pytest.mark.parametrize("name", MODELS)
def test_a_cut_potential_is_sampled_as_a_whole_one(name, tmp_path):
    together(sample, 2, tmp_path, name, True)
    together(sample, 2, tmp_path, name, False)
    for rank in range(2):
        assert torch.equal(*[load_file(tmp_path / f"{cut}{rank}.safetensors")["x"] for cut in (True, False)])
