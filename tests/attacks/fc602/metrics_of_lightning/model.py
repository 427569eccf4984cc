"""self.log collects metrics, and the model stops to learn when there are three."""

import torch

from trainer import Lightning


class Net(Lightning):
    def forward(self, x):
        y = x * 2
        self.log("mean", y.mean())
        self.print("mean", y.mean().item())
        print("seen", y.shape)
        return y * (1 if len(self.metrics) < 3 else 0)


# run
def make():
    return Net()


calls = [(torch.ones(2),)] * 4
