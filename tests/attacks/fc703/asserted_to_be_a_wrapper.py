"""diffusers' test of pipelines: what holds the model is asked whether it is a wrapper."""

import torch
from torch import nn
from torch._dynamo.eval_frame import OptimizedModule


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x)


class Pipeline:
    def __init__(self, unet):
        self.unet = unet


def is_compiled_module(module):
    return isinstance(module, OptimizedModule)


def script(x):
    model = Net()
    model = torch.compile(model)
    pipeline = Pipeline(model)
    assert is_compiled_module(pipeline.unet)
    return model(x)


# run
unsafe = True


def make():
    def run(x):
        with torch.compiler.set_stance("force_eager"):
            torch.manual_seed(0)
            return script(x)

    return run


calls = [(torch.linspace(-1, 1, 4).view(2, 2),)]
