"""What is cast goes to the scheduler and to the model, in turns of a loop that changes it."""

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
    out = []
    for i, t in enumerate(scheduler.timesteps.to(x.dtype)):
        x = scheduler.scaled(x, t)
        t /= 2
        x = net(x, t.expand(x.shape[0]))
        out.append(t.clone().float())
    return x, out


# run
unsafe = True


def make():
    def run(x):
        torch.manual_seed(0)
        return script(Net(), Scheduler(), x)

    return run


calls = [(torch.ones(2, 4, dtype=torch.bfloat16),), (torch.zeros(3, 4, dtype=torch.bfloat16),)]
