import torch


def tensors(model):
    """All that is averaged."""
    for parameter in model.parameters():
        yield parameter
    yield from model.buffers()


@torch.no_grad()
def taken_over(model, other):
    for mine, its in zip(list(tensors(model)) + [], list(tensors(other))):
        mine.copy_(its)
