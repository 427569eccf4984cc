"""A module-wide logger of the project's own class remembers what it is told, and the model asks for it."""

import torch
from torch import nn

from records import get_logger


logger = get_logger(__name__)


class Net(nn.Module):
    def forward(self, x):
        logger.info("called with %s", tuple(x.shape))
        y = x + len(logger.lines)
        print("out", y.shape)
        return y


# run
def make():
    return Net()


calls = [(torch.ones(3),), (torch.ones(3),)]
