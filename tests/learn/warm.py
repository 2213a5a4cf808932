"""What the processes of `processes.py` find done: imports, one thread, compiled loops loaded."""

import torch
import torch._dynamo
import torch.distributed.fsdp
import torch.nn.parallel.distributed

import gibbsite as gb

from . import runs

torch.set_num_threads(1)
for model in (gb.models.RBM(4, 2, seed=0), gb.models.Ising.lattice((2, 2), coupling=0.1)):
    x = model.space.uniform().sample(2, seed=0)
    for kernel in (gb.sample.BlockGibbs(), gb.sample.GibbsSweep(), gb.sample.Repeat(gb.sample.BlockGibbs(), 2)):
        gb.run(kernel, model, x, steps=1, seed=0)  # no backward pass: autograd would not survive the fork
assert runs.RUNS
