"""``grid.shape`` is an attribute of a class of the project: a list that is changed, of floats."""

import torch
import torch.nn as nn


class Grid:
    def __init__(self, rows, columns):
        self.shape = [rows, columns]

    def grow(self):
        self.shape[1] += 1


class Net(nn.Module):
    def forward(self, x, grid):
        t = torch.tensor(grid.shape[1])
        grid.grow()
        s = torch.tensor(grid.shape[0]).item()
        return x[:, : t.item()], s, torch.tensor(grid.shape).prod().item()

# run
def make(): return Net()
calls = [(torch.ones(2, 9), Grid(2, 3)), (torch.ones(2, 9), Grid(2.5, 3))]
