"""The text that is asked with changes from call to call and from layer to layer; some of it is no version."""

import re

import torch
from torch import nn

VERSION = re.compile(r"(?P<major>\d+)[.](?P<minor>\d+)")


def parse(text: str, least: int = 0) -> tuple[int, ...]:
    match = VERSION.match(text)
    if match is None:
        raise ValueError(text)
    parts = match.groupdict()
    return int(parts["major"]), max(least, int(parts["minor"]))


class Layer(nn.Module):
    def __init__(self, version):
        super().__init__()
        self.version = version

    def forward(self, x, text):
        return x * parse(self.version)[0] + parse(text, least=3)[1]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer("1.2"), Layer("4.8")])

    def forward(self, x, text):
        for layer in self.layers:
            x = layer(x, text)
        return x


# run
unsafe = True
compiled = True


def make():
    return Net()


calls = [(torch.ones(2), "1.7"), (torch.ones(2), "1.9"), (torch.ones(2), "none"), (torch.ones(2), "2.1")]
