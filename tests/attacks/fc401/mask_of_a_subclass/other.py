
import torch

from model import Picker


class First(Picker):
    def places(self, x):
        return torch.tensor([0, 2])
