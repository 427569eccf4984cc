"""The message shows what it is given, which counts how often it is shown."""

import torch
from torch import nn


class Note:
    def __init__(self):
        self.shown = 0

    def __str__(self):
        self.shown += 1
        return "note"


class Net(nn.Module):
    def forward(self, x, note):
        print("note:", note)
        return x * note.shown


# run
def make():
    return Net()


note = Note()
calls = [(torch.ones(3), note), (torch.ones(3), note)]
