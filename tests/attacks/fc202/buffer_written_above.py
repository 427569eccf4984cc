"""A counter in a buffer is written before sizes that do not add up: whoever takes the error sees that."""

import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
    def forward(self, x, ids: torch.LongTensor):
        self.seen.add_(1)
        counts = (ids != 0).sum(1)
        x = x.relu()
        parts = torch.split(x, counts.tolist())
        rows = torch.cat([p.float() for p in parts], dim=0)
        return rows * 2

def run(net, x, ids):
    torch._dynamo.reset()
    fast = torch.compile(net, backend="aot_eager")
    try:
        y = fast(x, ids)
    except Exception:
        y = None
    return y, net.seen.clone()

# run
def make(): return Net()
ids = torch.tensor([[1, 0, 2], [1, 1, 1]])
calls = [lambda n: run(n, torch.ones(5, 2), ids), lambda n: run(n, torch.ones(4, 2), ids)]
