"""Checks of lengths and rows, as many models have them: what raises still raises, what passes gives the same."""

import torch
import torch.nn as nn

torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Packed(nn.Module):
    def __init__(self, limit=8):
        super().__init__()
        self.limit = limit
        self.lin = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, lengths: torch.LongTensor, mask: torch.BoolTensor):
        most = int(lengths.max())
        if most > self.limit:
            raise ValueError(f"too long: {most}")
        total = 0
        for n in lengths.tolist():
            assert 0 < n <= 6, f"{n} is no length"
            total = total + n
        if total != x.shape[0] and self.limit != 9:
            raise IndexError("lengths and rows differ")
        rows = self.lin(x)[mask]
        if rows.shape[0] < 2 or len(rows) == 4:
            raise RuntimeError("rows")
        return rows.sum() * most

# run
def make():
    torch.manual_seed(0)
    return Packed()
mask = torch.tensor([True, True, False, True, False])
calls = [(torch.ones(5, 4), torch.tensor(n), m) for n in ([2, 3], [4, 1], [2, 9], [6, -1], [2, 2], [0, 5]) for m in (mask, ~mask, mask & ~mask)]
calls += [(torch.ones(5, 4), torch.tensor([2, 3]), torch.tensor([True] * 4 + [False]))]
compiled = True
