"""The list gets another tensor while a name still holds the old one, which is then advanced."""

import torch
import torch.nn as nn
import torch.nn.functional as F



class Memory:
    def __init__(self, layers, batch, room, size):
        self.rows = []
        self.at = []
        for _ in range(layers):
            self.rows.append(torch.zeros(batch, room, size))
            self.at.append(torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def append(self, layer, keys):
        rows, at = self.rows[layer], self.at[layer]
        n = at.item()
        rows[:, n : n + keys.shape[1]] = keys
        self.at[0] = -self.at[0]
        at += keys.shape[1]

    def __getitem__(self, layer):
        return self.rows[layer][:, : self.at[layer]]

    def length(self, layer): return self.at[layer].item()

    def reset(self):
        pass

# run
class Block(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.qk = nn.Linear(4, 8)

    def forward(self, x, memory):
        q, k = self.qk(x).chunk(2, -1)
        memory.append(self.layer, k)
        past = memory[self.layer]
        return x + (q @ past.transpose(1, 2)).softmax(-1) @ past * (1 + memory.length(self.layer))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(i) for i in range(2)])

    def forward(self, x, memory):
        for block in self.blocks:
            x = block(x, memory)
        return x

def go(net):
    outputs, memory = [], Memory(2, 2, 24, 4)
    for _ in range(2):
        x = torch.linspace(-1, 1, 40).view(2, 5, 4)
        for _ in range(4):
            x = net(x, memory)
            outputs.append(x.clone())
            x = x[:, -1:]
        memory.reset()
    return outputs

def make(): return Net()
calls = [go, go]
