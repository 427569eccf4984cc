"""The features are numpy arrays when they come from the feature extractor, tensors when they are cached."""

import numpy as np
import torch
import torch.nn as nn


class Features(nn.Module):
    def forward(self, features):
        if (features < 0).any():
            raise ValueError("negative energy")
        return torch.as_tensor(features).float().sqrt()

# run
def make(): return Features()
calls = [(np.ones(3),), (torch.ones(3),), (-np.ones(3),)]
