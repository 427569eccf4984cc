"""What is printed is collected, and comes back as a part of the result."""

import contextlib
import io

import torch
from torch import nn


class Net(nn.Module):
    def describe(self, x):
        print("mean", x.mean().item())
        print("rows", x.shape[0])

    def forward(self, x):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            self.describe(x)
        return x * 2, text.getvalue()


# run
def make():
    return Net()


calls = [(torch.ones(2, 3),)]
