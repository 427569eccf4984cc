"""How long the queue is it finds out by filling itself."""

import torch
from torch import nn

from queue_of_files import Queue


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.queue = Queue()

    def forward(self, x):
        print("waiting", len(self.queue))
        return x * self.queue.filled


# run
def make():
    return Net()


calls = [(torch.ones(3),)]
