"""One row is repeated, and a size of -1 kept, also where the number comes back from the function with the check."""

import torch
import torch.nn as nn

torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Net(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.LongTensor):
        n = self._bounded(int(lengths.max()))
        rows = self._rows(x)
        return x[:1].expand(n, 4) + x.sum(), rows + torch.ones(3, 4)

    def _bounded(self, n):
        if n > 8:
            raise ValueError("too long")
        return n

    def _rows(self, x):
        kept = x[x[:, 0] > 0]
        if len(kept) == 0:
            raise ValueError("nothing")
        return kept

# run
def make(): return Net()
calls = [(torch.tensor(s).unsqueeze(1) * torch.ones(1, 4), torch.tensor([n])) for s in ([1.0, -1.0], [1.0, 1.0, 1.0]) for n in (2, 1, -1)]
compiled = True
