import torch

from model import Conv


class Wide(Conv):
    def __init__(self):
        super().__init__()
        self.register_buffer("stride", torch.tensor(5), persistent=False)
