"""A slice that is too large raises nothing, nor does a mask that keeps nothing; nothing is asserted of either."""

import torch
import torch.nn as nn

torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Cut(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.LongTensor):
        n = int(lengths.max())
        if n > 100:
            raise ValueError("too long")
        kept = x[x > 0]
        if kept.numel() > 50:
            raise ValueError("too many")
        return x[:n].sum() + kept.sum() + torch.zeros(max(n, 0)).sum() + x[-1:].sum()

# run
def make(): return Cut()
calls = [(torch.ones(k) * s, torch.tensor([n])) for k in (3, 60) for s in (1.0, -1.0) for n in (-2, 0, 2, 99, 101)]
compiled = True
unsafe = True
