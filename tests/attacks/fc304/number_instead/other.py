



def strip(net):
    for name in [name for name, _ in net.named_buffers()]:
        value = getattr(net, name).item()
        delattr(net, name)
        setattr(net, name, value)
    return net
