"""The flag comes from checkpoints, also into layers of layers, into a copy and by assignment."""

import copy
import io

import torch
from torch import nn


class Codebook(nn.Module):
    def __init__(self, wait=True):
        super().__init__()
        self.register_buffer("initted", torch.tensor([not wait]))
        self.register_buffer("embed", torch.ones(4))

    def init_embed(self, data):
        if self.initted:
            return
        self.embed.data.copy_(data.mean(0))
        self.initted.data.copy_(torch.tensor([True]))

    def forward(self, x):
        self.init_embed(x)
        return x * self.embed


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.books = nn.ModuleList([Codebook(), Codebook(False)])

    def forward(self, x):
        for book in self.books:
            x = book(x)
        return x


# run
unsafe = True


def make():
    return Net()


def loaded(net, assign=False):
    other = Net()
    other(torch.full((2, 4), 3.0))
    net.load_state_dict(other.state_dict(), assign=assign)


def assigned(net):
    loaded(net, assign=True)


def copied(net):
    twin = copy.deepcopy(net)
    one = twin(torch.full((2, 4), 5.0))
    file = io.BytesIO()
    torch.save(twin.state_dict(), file)
    file.seek(0)
    net.load_state_dict(torch.load(file))
    return one


x = torch.arange(8.0).view(2, 4)
calls = [(x,), (x + 1,)]
calls = [lambda net: (x,), lambda net: (loaded(net), (x + 2,))[1], lambda net: (assigned(net), (x + 3,))[1]]
calls += [lambda net: (copied(net), (x + 3,))[1]]
