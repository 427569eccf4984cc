"""Who catches the error imports the module by the name of a folder that has no ``__init__.py``."""

import torch
import torch.nn as nn

from parts.checks import Checked


class Careful(nn.Module):
    def __init__(self):
        super().__init__()
        self.checked = Checked()

    def forward(self, x):
        try:
            return self.checked(x)
        except ValueError:
            return x

# run
def make(): return Careful()
calls = [(torch.ones(3),), (torch.full((3,), 9.0),)]
