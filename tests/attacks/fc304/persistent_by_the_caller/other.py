



def keep(net):
    for name, buffer in list(net.named_buffers()):
        net.register_buffer(name, buffer, persistent=True)
    return net
