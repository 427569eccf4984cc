"""What has an effect is evaluated as often as before, and in order."""

import torch
import torch.nn as nn

torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.limits = [9, 8, 7, 6, 5, 4, 3, 2, 1]

    def forward(self, x: torch.Tensor, lengths: torch.LongTensor):
        n = int(lengths.max())
        if n > self.limits.pop():
            raise ValueError("too long")
        if n > self.limits[-1] or self.limits.pop() > 8:
            raise ValueError("longer")
        if 0 < (m := n) < 0:
            raise ValueError("named")
        return x * m

# run
def make(): return Stack()
calls = [(torch.ones(2), torch.tensor([n])) for n in (0, 1, 9, 2)]
def state(m): return m.limits
