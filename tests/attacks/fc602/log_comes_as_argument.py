"""The caller decides what the logger is: here it is one that counts."""

import torch
from torch import nn


class Meter:
    def __init__(self):
        self.n = 0

    def info(self, *args):
        self.n += 1

    debug = warning = info


class Net(nn.Module):
    def forward(self, x, logger=None):
        if logger is not None:
            logger.info("in %s", x.shape)
            logger.debug("out")
        return x * 2 + (logger.n if logger is not None else 0)


# run
def make():
    return Net()


calls = [(torch.ones(3),), (torch.ones(3), Meter())]
