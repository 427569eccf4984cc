"""Sigmas are made of the timesteps, and mixed into latents that the model wants in their dtype."""

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


def noisy(scheduler, x, dtype):
    timesteps = scheduler.timesteps[: x.shape[0]].to(dtype)
    sigmas = (timesteps / 1000).view(-1, 1)
    return ((1.0 - sigmas) * x + sigmas).to(dtype), timesteps


def script(net, scheduler, x):
    latents, timesteps = noisy(scheduler, x, torch.bfloat16)
    return net(latents, timesteps)


# run
unsafe = True


def make():
    def run(x):
        torch.manual_seed(0)
        return script(Net(), Scheduler(), x)

    return run


calls = [(torch.ones(2, 4, dtype=torch.bfloat16),), (torch.zeros(3, 4, dtype=torch.bfloat16),)]
