"""Messages about shapes, means and plain attributes: in compiled code they may go, the numbers may not."""

import logging
import warnings

import torch
from torch import nn


logger = logging.getLogger(__name__)


class Net(nn.Module):
    def __init__(self, width: int = 3):
        super().__init__()
        self.width = width
        self.lin = nn.Linear(width, width)

    def forward(self, x):
        print("in", x.shape, self.width)
        y = self.lin(x)
        logger.info("mean %s", y.mean().item())
        if y.shape[0] > 2:
            warnings.warn(f"many rows: {y.shape[0]}")
            y = y * 2
        for i in range(2):
            print(i, y.max().item())
            y = y + i
        else:
            logger.debug("done")
        return y


# run
def make():
    return Net()


train = True
calls = [(torch.ones(2, 3),), (torch.ones(4, 3),)]
