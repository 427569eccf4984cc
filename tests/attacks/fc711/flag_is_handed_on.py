"""A flag that an operation is given: a backend may not compile it as long as it has no value."""

import torch
import torch.nn as nn

torch._dynamo.config.capture_scalar_outputs = True


class Filled(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.BoolTensor):
        good = bool(mask.any())
        if not good:
            raise ValueError("nothing is left")
        return x.masked_fill(mask, good)

# run
def make(): return Filled()
calls = [(torch.ones(2), torch.tensor(m)) for m in ([True, False], [False, False])]
compiled = True
