import torch.nn as nn

from model import Conv


class Shared(Conv):
    """The weights and numbers of another one."""

    def __init__(self, other):
        nn.Module.__init__(self)
        self.conv = other.conv
        for name, buffer in other.named_buffers(recurse=False):
            self.register_buffer(name, buffer, persistent=False)
