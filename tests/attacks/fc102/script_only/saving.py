import torch


def frozen(model, example):
    """The model as TorchScript, or as it is where that does not work on ``example``."""
    try:
        script = torch.jit.trace(model.eval(), example)
        script = torch.jit.freeze(script)
        with torch.no_grad():
            script(example)
    except (RuntimeError, ValueError):
        return model
    return script
