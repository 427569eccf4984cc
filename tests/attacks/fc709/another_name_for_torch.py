"""torch goes by another name, and a parameter is called torch."""

import torch as th
from torch import nn


class Scheduler:
    def __init__(self):
        self.timesteps = th.tensor([1000.0, 500.0, 250.0, 125.0])
        self.num_train_timesteps = 1000

    def scaled(self, x, t):
        return x * float(t) / 1000


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 4, dtype=th.bfloat16)

    def forward(self, x, timestep):
        angles = timestep.float()[:, None] * th.exp(-th.arange(4) / 2.0)
        return x + self.lin(th.cat([angles.sin(), angles.cos()], -1).to(x.dtype))


def noisy(scheduler, x, torch=None):
    timesteps = scheduler.timesteps[: x.shape[0]]
    return x, timesteps.to(device=x.device, dtype=x.dtype, non_blocking=True, copy=True)


def script(net, scheduler, x):
    x, timesteps = noisy(scheduler, x)
    return net(x, timesteps)


# run
unsafe = True


def make():
    def run(x):
        th.manual_seed(0)
        return script(Net(), Scheduler(), x)

    return run


calls = [(th.ones(2, 4, dtype=th.bfloat16),), (th.zeros(3, 4, dtype=th.bfloat16),)]
