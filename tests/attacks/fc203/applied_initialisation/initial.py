def initialise(module):
    """Paddings start from one."""
    if type(module).__name__ == "Conv":
        module.stride.fill_(1)
