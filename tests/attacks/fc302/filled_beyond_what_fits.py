"""A number that does not fit is an error, also where all places get it."""

import torch


class Memory:
    def __init__(self, batch, room, size):
        self.rows = torch.zeros(batch, room, size)
        self.seen = torch.zeros(2, dtype=torch.int)

    @torch.no_grad()
    def append(self, keys):
        n = int(self.seen[0])
        self.rows[:, n : n + keys.shape[1]] = keys
        self.seen[0] += keys.shape[1]
        return self.rows.clone()

    def close(self):
        self.seen.fill_(3000000000)
        return 1


# run
def make():
    return Memory(1, 12, 2)


KEYS = torch.arange(1, 5, dtype=torch.float32).reshape(1, 2, 2)
calls = [
    lambda memory: memory.append(KEYS),
    lambda memory: memory.append(KEYS),
    lambda memory: memory.close(),
    lambda memory: memory.append(KEYS),
]
