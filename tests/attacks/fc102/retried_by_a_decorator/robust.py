import torch


def forgiving(cls):
    """The class with a ``forward`` that handles what is not finite."""
    plain = cls.forward

    def forward(self, x):
        try:
            return plain(self, x)
        except ValueError:
            return plain(self, torch.nan_to_num(x, posinf=0.0))

    cls.forward = forward
    return cls
