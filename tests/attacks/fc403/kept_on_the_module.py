"""The list is kept on the module, whose method empties it for the next batch."""

import torch
from torch import nn


class Owners(nn.Module):
    def start(self):
        self.counts.clear()

    def forward(self, parts):
        lengths = self.counts = [len(p) for p in parts]
        repeats = torch.tensor(lengths)
        marks = torch.arange(len(lengths))
        self.start()
        return torch.repeat_interleave(marks, repeats)


# run
def make():
    return Owners()


calls = [([torch.ones(2), torch.ones(3)],)]
