"""A checkpoint of another stride is loaded: a hook brings in what is not persistent."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, width=2, stride=2):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, stride)
        self.register_buffer("stride", torch.tensor(self.conv.stride[0], dtype=torch.int64), persistent=False)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        for name, buffer in self.named_buffers(recurse=False):
            if prefix + name in state_dict:
                buffer.copy_(state_dict.pop(prefix + name))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, x):
        x = F.pad(x, (self.stride, 0))
        return self.conv(x)

# run
def make():
    conv = Conv()
    conv.load_state_dict({**conv.state_dict(), "stride": torch.tensor(5)})
    return conv
calls = [(torch.ones(1, 2, 8),)]
