"""A number is put where the tensor was: what asks it for more fails from then on."""

import torch


class Memory:
    def __init__(self, batch, room, size):
        self.rows = torch.zeros(batch, room, size)
        self.seen = torch.zeros((), dtype=torch.long)

    @torch.no_grad()
    def append(self, keys):
        n = self.seen.item()
        self.rows[:, n : n + keys.shape[1]] = keys
        self.seen += keys.shape[1]
        return self.rows.clone()

    def rewind(self):
        self.seen = 2


# run
def make():
    return Memory(1, 12, 2)


KEYS = torch.arange(1, 5, dtype=torch.float32).reshape(1, 2, 2)
calls = [
    lambda memory: memory.append(KEYS),
    lambda memory: memory.append(KEYS),
    lambda memory: memory.rewind(),
    lambda memory: memory.append(KEYS),
]
