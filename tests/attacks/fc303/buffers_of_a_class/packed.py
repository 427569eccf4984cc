
import torch


class Packed:
    def __init__(self, *shape):
        self.bytes = torch.zeros(*shape)
        self.shape = self.bytes.shape

    def __setitem__(self, place, value):
        self.bytes[place] = value.half().float()

    def __getitem__(self, place):
        return self.bytes[place]


def zeros(*shape):
    return Packed(*shape)
