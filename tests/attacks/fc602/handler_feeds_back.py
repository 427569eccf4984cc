"""A handler of the standard library's logger keeps what is written; the model reads it in the next call."""

import logging

import torch
from torch import nn


logger = logging.getLogger("net.handler")


class Keep(logging.Handler):
    def __init__(self):
        super().__init__()
        self.numbers = []

    def emit(self, record):
        self.numbers.append(record.args[0])


keep = Keep()
logger.addHandler(keep)


class Net(nn.Module):
    def forward(self, x):
        logger.warning("rows: %d", x.shape[0])
        return x * sum(keep.numbers)


# run
def make():
    logger.handlers[:] = [keep]
    return Net()


calls = [(torch.ones(2),), (torch.ones(3),)]
