import torch


class Span:
    def __init__(self, length):
        self.length = length

    def max(self):
        return self.length - 1

    def tensor(self):
        return torch.arange(self.length)
