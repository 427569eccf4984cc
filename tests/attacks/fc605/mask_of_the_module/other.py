
import torch

from model import Blocks


class Wide(Blocks):
    def __init__(self):
        super().__init__()
        self.mask = torch.zeros(4).expand(4, 4).unfold(0, 4, 1)[0].clone()
        self.mask = torch.zeros(10).as_strided((4, 4), (2, 1))
