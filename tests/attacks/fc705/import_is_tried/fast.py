import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x * 3


net = torch.compile(Net(), dynamic="auto", backend="eager")
