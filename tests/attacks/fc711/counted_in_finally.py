"""What stands in a finally is run on the way of the error, too."""

import torch
import torch.nn as nn


torch._dynamo.config.capture_scalar_outputs = True


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0

    def forward(self, x: torch.Tensor, lengths: torch.LongTensor):
        try:
            n = int(lengths.max())
            if n > 5:
                raise ValueError("long")
        finally:
            self.count += 1
        return x * 2

# run
def make(): return Net()
def state(m): return m.count
calls = [(torch.ones(3), torch.tensor([n])) for n in (3, 11, 4, 15)]
compiled = True
