"""Another file falls back where the check fails."""

import torch
import torch.nn as nn

torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Short(nn.Module):
    def forward(self, x, lengths: torch.LongTensor):
        n = int(lengths.max())
        if n > 5:
            raise ValueError("too long")
        return x * n

# run
from fallback import Model
def make(): return Model(Short())
calls = [(torch.ones(2), torch.tensor(n)) for n in ([1, 2], [1, 9])]
