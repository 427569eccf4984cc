



def relu(x):
    return x - x.max() if x.numel() else x
