"""The limit is a tensor: a comparison with it is one, which no check of the graph takes."""

import torch
import torch.nn as nn

torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True


class Limited(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("most", torch.tensor(5))

    def forward(self, x: torch.Tensor, lengths: torch.LongTensor, limit, other: int):
        n = int(lengths.max())
        if n > limit:
            raise ValueError("too long")
        if n > self.most:
            raise ValueError("longer")
        if n > other:
            raise ValueError("longest")
        assert n < limit or n == 1, f"{n}"
        return x * n

# run
def make(): return Limited()
calls = [(torch.ones(2), torch.tensor([1, n]), torch.tensor(k), torch.tensor(o)) for n in (2, 4, 6) for k in (3, 5, 9) for o in (4, 7)]
compiled = True
