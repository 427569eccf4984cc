"""What is called logger keeps the numbers that the next call is scaled with."""

import torch
from torch import nn

from recorder import Recorder


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.logger = Recorder()

    def forward(self, x):
        print("in", x.shape)
        y = x * self.logger.scale
        self.logger.info("mean", float(y.mean()))
        return y


# run
def make():
    return Net()


calls = [(torch.ones(3),), (torch.ones(3) * 2,), (torch.ones(3) * 3,)]
