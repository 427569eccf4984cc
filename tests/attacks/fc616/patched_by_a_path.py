"""A test puts its own context manager there, by a path."""

import contextlib
import torch
import torch.nn as nn
import torch.nn.functional as F
from unittest import mock

SEEN = []

@contextlib.contextmanager
def mine(**flags):
    SEEN.append(flags)
    yield

class Net(nn.Module):
    def forward(self, x):
        with torch.backends.cuda.sdp_kernel(enable_flash=False):
            x = F.scaled_dot_product_attention(x, x, x)
        return x, len(SEEN)

class Test(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def forward(self, x):
        with mock.patch("torch.backends.cuda.sdp_kernel", mine):
            return self.net(x)

# run
import warnings
warnings.simplefilter("ignore")
def make(): return Test()
calls = [(torch.linspace(-1, 1, 64).reshape(1, 2, 4, 8),)]
