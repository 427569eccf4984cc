"""Another file enters a context manager whose ``__exit__`` counts the error and says that it was handled."""

import torch
import torch.nn as nn


class Layer(nn.Module):
    def forward(self, x):
        if (x.abs() > 100).any():
            raise OverflowError("activations explode")
        return x * 2

# run
from stack import Stack
def make(): return Stack(Layer())
calls = [(torch.ones(2),), (torch.full((2,), 60.0),), (torch.full((2,), 200.0),)]
def state(stack): return stack.guard.count
