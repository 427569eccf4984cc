"""A NaN passes a check that asks for what is too large, and no check that asks for what is small enough."""

import torch
import torch.nn as nn

torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Check(nn.Module):
    def forward(self, x, y):
        largest = x.max().item()
        if largest > 5:
            raise ValueError("too large")
        other = float(y.max())
        if not other <= 5:
            raise ValueError("not small enough")
        assert -9 < other, f"too small: {other}"
        return x + y * largest

# run
nan = float("nan")
def make(): return Check()
calls = [(torch.tensor([0.0, a]), torch.tensor([b, 1.0])) for a in (1.0, 9.0, nan) for b in (1.0, nan, 9.0)]
calls += [(torch.ones(2), torch.full((2,), -11.0))]
compiled = True
