"""What is called with arrays, floats and numbers of NumPy does what it did."""

import torch
import torch.nn as nn

torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True


import numpy as np


class Sized(nn.Module):
    def forward(self, x, lengths: torch.LongTensor, width):
        n = lengths.max().item()
        if n > width:
            raise ValueError("too wide")
        if n:
            x = x + 1
        if not n:
            raise ValueError("nothing")
        return x * n

# run
def make(): return Sized()
calls = [(torch.ones(2), given, w) for given in (np.array([1, 3]), torch.tensor([1.0, 2.5]), torch.tensor([0.5, 0.0]), torch.tensor([0, 0])) for w in (np.int64(2), 2.4, 9)]
