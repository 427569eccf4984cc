"""Counts, not bools: ``~2`` is not 0, and 0 is what has to pass."""

import torch
import torch.nn as nn


class Check(nn.Module):
    def forward(self, ids):
        wrong = (ids > 9).sum()
        if wrong:
            raise ValueError(f"{wrong} words are unknown")
        known = (ids > 0).sum()
        if not known:
            raise ValueError("only padding")
        assert ids.count_nonzero() - 1, f"a single word: {ids}"
        return ids + 1

# run
def make(): return Check()
calls = [(torch.tensor(v),) for v in ([1, 2, 3], [1, 12, 13], [0, 0], [1, 0], [4, 5])]
