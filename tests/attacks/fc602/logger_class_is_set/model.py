"""Loggers of the standard library are of the project's class, which counts warnings; the model reads the count."""

import logging

import torch
from torch import nn

import records


logging.setLoggerClass(records.Counting)
logger = logging.getLogger("net.counting")
logging.setLoggerClass(logging.Logger)


class Net(nn.Module):
    def forward(self, x):
        if x.shape[0] > 2:
            logger.warning("many rows: %d", x.shape[0])
        return x * logger.count


# run
def make():
    logging.root.manager.loggerDict.pop("net.counting", None)
    return Net()


calls = [(torch.ones(2),), (torch.ones(3),), (torch.ones(4),)]
