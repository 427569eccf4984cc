seen = []


def relu(x):
    seen.append(1)
    return x - 1
