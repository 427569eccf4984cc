"""What was counted before the error stays counted, and who calls in another function counts as well."""

import torch
import torch.nn as nn

torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = 0
        self.names = []

    def forward(self, x, lengths: torch.LongTensor):
        self.seen += 1
        n = int(lengths.max())
        if n > 5:
            raise ValueError("too long")
        return x * self.least(lengths)

    def least(self, lengths: torch.LongTensor):
        n = int(lengths.min())
        if n < 1:
            self.names.append(n)
            raise ValueError("too short")
        return n

# run
def make(): return Net()
calls = [(torch.ones(2), torch.tensor(n)) for n in ([1, 2], [1, 9], [0, 1], [2, 2])]
def state(m): return [m.seen, m.names]
compiled = True
