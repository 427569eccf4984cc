"""Where a timestep is in the schedule is looked up by its value, after it was cast."""

import torch
from torch import nn


class Scheduler:
    def __init__(self):
        self.timesteps = torch.tensor([1000.0, 500.0, 250.0, 125.0])
        self.num_train_timesteps = 1000

    def scaled(self, x, t):
        return x * float(t) / 1000


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 4, dtype=torch.bfloat16)

    def forward(self, x, timestep):
        angles = timestep.float()[:, None] * torch.exp(-torch.arange(4) / 2.0)
        return x + self.lin(torch.cat([angles.sin(), angles.cos()], -1).to(x.dtype))


def script(net, scheduler, x):
    schedule = scheduler.timesteps.half()
    timesteps = scheduler.timesteps[: x.shape[0]].half()
    at = [(schedule == t).nonzero().item() for t in timesteps]
    sigmas = torch.linspace(0, 1, 4).to(x.dtype)[at]
    return net(x * sigmas[:, None], timesteps), at


# run
unsafe = True


def make():
    def run(x):
        torch.manual_seed(0)
        return script(Net(), Scheduler(), x)

    return run


calls = [(torch.ones(2, 4, dtype=torch.bfloat16),), (torch.zeros(3, 4, dtype=torch.bfloat16),)]
