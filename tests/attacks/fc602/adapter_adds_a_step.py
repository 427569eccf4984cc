"""The adapter around the logger numbers the messages, and the number is the step of the model."""

import logging

import torch
from torch import nn


class Steps(logging.LoggerAdapter):
    step = 0

    def process(self, message, kwargs):
        self.step += 1
        return f"[{self.step}] {message}", kwargs


logger = Steps(logging.getLogger("net.steps"), {})


class Net(nn.Module):
    def forward(self, x):
        logger.warning("rows %d", x.shape[0])
        return x * logger.step


# run
def make():
    logger.step = 0
    return Net()


calls = [(torch.ones(2),), (torch.ones(2),)]
