"""What is returned is written to by the caller, in all rows at once."""

import torch
from torch import nn


class Ids(nn.Module):
    def forward(self, x):
        rows, length = x.shape
        places = torch.arange(length, device=x.device).unsqueeze(0).expand(rows, -1)
        torch._dynamo.decorators.mark_unbacked(places, 0)
        return places


# run
from other import Net
def make():
    return Net()


calls = [(torch.ones(2, 3),), (torch.ones(1, 3),)]
