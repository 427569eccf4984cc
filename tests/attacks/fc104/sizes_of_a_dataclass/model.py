"""The sizes are a field of a dataclass of another file; its method narrows them."""

import torch
import torch.nn as nn

from batch import Batch


class Net(nn.Module):
    def forward(self, x, batch: Batch):
        sizes = batch.sizes.long()
        out = torch.zeros(x.shape[0], 12)
        for i in range(sizes.shape[0]):
            height, width = sizes[i].tolist()
            out[i, : height * width] = x[i].mean()
            batch.narrow()
        return out.sin()

# run
from batch import Batch
def make(): return Net()
calls = [(torch.ones(2, 3), Batch(torch.tensor([[2, 3], [3, 4]])))]
