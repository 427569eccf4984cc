"""A method that the project puts on all loggers says a message once; nobody can tell what it remembers."""

import logging

import torch
from torch import nn

import notes

logger = logging.getLogger(notes.__name__)


class Net(nn.Module):
    def forward(self, x):
        if x.shape[0] > 2:
            logger.warning_once("many rows")
        return x * 2


# run
def make():
    return Net()


calls = [(torch.ones(2),), (torch.ones(3),), (torch.ones(3),)]
