"""A tensor of an inference mode cannot be changed outside of it: where nothing is set, nobody tried."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, ids: torch.LongTensor):
        with torch.inference_mode():
            labels = ids.clone()
        if (labels == 3).sum().item() > 0:
            labels[labels == 3] = -100
        return labels + 1


# run
def make():
    return Net()


calls = [(torch.tensor([1, 2]),), (torch.tensor([1, 3]),)]
