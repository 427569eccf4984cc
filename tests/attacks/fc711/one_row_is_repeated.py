"""One row is repeated to meet many, and -1 keeps a size: a graph that does not know the number does neither."""

import torch
import torch.nn as nn

torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Rows(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, lengths: torch.LongTensor):
        kept = x[x[:, 0] > 0]
        if kept.shape[0] == 0:
            raise ValueError("nothing is left")
        return (kept + y).sum() + self._wide(y, lengths) + self._first(y, lengths) + self._one(x, y)

    def _wide(self, y: torch.Tensor, lengths: torch.LongTensor):
        n = int(lengths.max())
        if n > 10:
            raise ValueError("too long")
        m = n * 1
        for _ in range(1):
            y = y + y.expand(m, 4).sum()
        return y

    def _first(self, y: torch.Tensor, lengths: torch.LongTensor):
        for n in lengths.tolist():
            assert n < 9, f"{n}"
            y = y + y[:n, :1]
        return y

    def _one(self, x: torch.Tensor, y: torch.Tensor):
        kept = x[x[:, 0] > 0]
        self._some(kept)
        return (kept + y).sum()

    def _some(self, rows):
        if rows.shape[0] == 0:
            raise ValueError("nothing is left")

# run
def make(): return Rows()
rows = [torch.tensor([[1.0] * 4] * k + [[-1.0] * 4] * (3 - k)) for k in (3, 1, 0)]
calls = [(x, torch.ones(3, 4), torch.tensor([n])) for x in rows for n in (3, -1, 1, 11)]
compiled = True
