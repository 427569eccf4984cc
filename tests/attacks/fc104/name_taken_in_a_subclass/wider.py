import torch

from model import Net


class Wider(Net):
    def _forward_loop(self, *args):
        return torch.zeros(1)

    def _forward_rows(self, *args):
        return torch.zeros(2)

    def _loop(self, *args):
        return torch.zeros(3)

    _read_rows = _forward_part = _forward_turns = _turns = _loop
