"""Python integers and a break through a module-level name, chosen once when the file is imported."""

import torch
import torch.nn as nn

# as it stands: 9 breaks, 7 recompiles in three rounds
PROMISE = {"strategy": "single-graph", "breaks": 0, "launches": 1, "recompiles_at_most": 3}

try:
    from torch._dynamo import graph_break as _break_graph
except ImportError:  # an old PyTorch

    def _break_graph():
        pass


class History:
    def __init__(self, depth, batch, capacity, width):
        self.capacity = capacity
        self.store = [torch.zeros(batch, capacity, width) for _ in range(depth)]
        self.heads = [0 for _ in range(depth)]

    def remember(self, level, rows):
        n = rows.shape[1]
        if self.heads[level] + n > self.capacity:
            raise IndexError("history is full")
        self.store[level][:, self.heads[level] : self.heads[level] + n] = rows
        _break_graph()
        self.heads[level] += n
        return self.store[level][:, : self.heads[level]]

    def length(self, level):
        return self.heads[level]

    def forget(self):
        for level in range(len(self.heads)):
            self.heads[level] = 0


class Mixer(nn.Module):
    """Linear attention over the history, each level with its own."""

    def __init__(self, depth=2, width=10):
        super().__init__()
        self.reads = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.writes = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x, history):
        for level, (read, write) in enumerate(zip(self.reads, self.writes, strict=True)):
            seen = history.remember(level, write(x))
            gates = torch.sigmoid(torch.matmul(read(x), seen.transpose(1, 2)))
            x = x + torch.matmul(gates, seen) / history.length(level)
        return x


def build():
    return Mixer().eval()


def one_round(model, history, batch):
    history.forget()
    x = torch.linspace(-1, 1, batch * 3 * 10).view(batch, 3, 10)
    outputs = []
    for _ in range(21):
        x = torch.tanh(model(x, history)[:, -1:])
        outputs.append(x)
    return [*outputs, history.length(0), history.length(1)]


def rounds():
    return [lambda model, batch=batch: one_round(model, History(2, batch, 24, 10), batch) for batch in (1, 3, 2)]
