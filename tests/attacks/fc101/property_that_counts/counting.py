import torch

from model import Rotary


class Counting(Rotary):
    """Rotary positions with a table that is built when it is asked for, larger every time."""

    def __init__(self):
        super().__init__()
        self.asked = 0
        del self._buffers["table"]

    def __getattr__(self, name):
        if name == "table" and "asked" in vars(self):
            self.asked += 1
            return torch.full((4,), float(self.asked))
        return super().__getattr__(name)
