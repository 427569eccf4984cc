"""TorchScript knows neither a lambda nor a check of the graph: what is scripted stays."""

import torch
import torch.nn as nn

torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Scripted(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        n = int(lengths.max())
        if n > 5:
            raise ValueError("too long")
        return x * n


def scripted():
    return torch.jit.script(Scripted())

# run
def make(): return scripted()
calls = [(torch.ones(2), torch.tensor(n)) for n in ([1, 2], [1, 9])]
