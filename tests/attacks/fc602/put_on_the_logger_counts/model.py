"""A method that the project puts on all loggers counts by way of another function; the model reads the count."""

import logging

import torch
from torch import nn

import notes

logger = logging.getLogger(f"{notes.__name__}.counts")


class Net(nn.Module):
    def forward(self, x):
        if x.shape[0] > 2:
            logger.warning_once("many rows")
        return x * getattr(logger, "count", 1)


# run
def make():
    logger.count = 1
    return Net()


calls = [(torch.ones(2),), (torch.ones(3),), (torch.ones(3),)]
