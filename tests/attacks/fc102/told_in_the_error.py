"""What is said before the error, and what is put together for it, stays with the eager code."""

import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Net(nn.Module):
    def forward(self, x):
        if (x < 0).any():
            places = []
            for place in (x < 0).nonzero():
                places.append(tuple(place.tolist()))
            logger.error("negative numbers at %s", places)
            raise ValueError(f"negative numbers at {places}")
        return x.sqrt()


# run
def make():
    return Net()


calls = [(torch.ones(3),), (-torch.ones(3),), (torch.ones(3),)]
