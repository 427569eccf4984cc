"""A bar around a list that grows, an iterator that is gone on with, views, and places where no statement can be put."""

import torch
import torch.nn as nn
from tqdm import tqdm, trange


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.todo = [1, 2]
        self.steps = {"a": 1, "b": 2}

    def forward(self, x, numbers):
        for t in tqdm(self.todo, disable=True, desc="a long description of what is done here, and of why it is"):
            if t < 4 and len(self.todo) < 6:
                self.todo.append(t + 1)
            x = x + t
        it = iter([1, 2, 3, 4])
        for t in tqdm(it, disable=True, desc="a long description of what is done here, and of why it is"):
            if t == 2:
                break
        for t in it:
            x = x * t
        for _, v in tqdm(self.steps.items(), total=len(self.steps), desc="a long description of it all", disable=True):
            x = x + v
        for i in trange(x.shape[0], 0, -1, disable=True):
            x = x + i
        pairs = {i: t for i, t in enumerate(tqdm(numbers, disable=True), 1)}
        later = (x * t for t in tqdm(numbers, disable=True))
        made = lambda: [t for t in tqdm(numbers, disable=True)]
        return x, pairs, list(later), made()

# run
def make(): return Net()
calls = [(torch.ones(2, 4), [1, 2]), (torch.ones(2, 4), range(3))]
