"""The module's own batch is -1 where nobody has set it."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, batch: int = -1):
        super().__init__()
        self.batch = batch
        self.rotary = nn.Embedding(32, 4)

    def forward(self, x):
        length = x.shape[1]
        places = torch.arange(length).unsqueeze(0).expand(self.batch, -1)
        torch._dynamo.decorators.mark_unbacked(places, 0)
        return self.rotary(places)


# run
def make():
    return nn.ModuleList([Net(), Net(3)])


calls = [lambda m: [part(torch.ones(2, 3)) for part in m]]
