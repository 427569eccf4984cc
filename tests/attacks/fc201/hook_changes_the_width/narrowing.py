from model import Net


def narrowing(net: Net) -> Net:
    """A channel less with every run of the first layer."""

    def hook(module, args, out):
        net.width -= 1

    net.layers[0].register_forward_hook(hook)
    return net
