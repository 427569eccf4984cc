"""The flag is kept in a list of another file, where it is compared by its type."""

import torch
import torch.nn.functional as F
from torch import nn

from flags import keep


class Net(nn.Module):
    def forward(self, q, k, length: int):
        causal = keep(q.shape[2] == length)
        same = q.shape[2] == k.shape[2]
        keep(same)
        return F.scaled_dot_product_attention(q, k, k, is_causal=same), causal


# run
import numpy as np
import flags
def make():
    return Net()


q = torch.randn(1, 1, 3, 4)
calls = [(q, q, 3), (q, q, np.int64(3)), (q, q[:, :, :2], np.int64(2)), lambda m: flags.kinds()]
