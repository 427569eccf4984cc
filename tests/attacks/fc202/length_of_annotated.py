"""Annotated as a tensor, and given what the tokenizer returns: an array of Python has ``tolist`` and no shape."""

import array

import torch
import torch.nn as nn


class Count(nn.Module):
    def forward(self, x, ids: torch.Tensor):
        n = len(ids.tolist())
        return x * n

# run
def make(): return Count()
calls = [(torch.ones(2), array.array("i", [1, 2])), (torch.ones(2), torch.ones(3, 2))]
