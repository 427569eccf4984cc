def recorded(model):
    """Keep the activations of the projection."""
    model.proj.seen = []
    model.proj.register_forward_hook(lambda module, args, out: module.seen.append(out.mean().item()))
    return model
