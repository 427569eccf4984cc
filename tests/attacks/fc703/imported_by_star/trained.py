import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x).relu()


net = Net()
net = torch.compile(net, backend="eager")
