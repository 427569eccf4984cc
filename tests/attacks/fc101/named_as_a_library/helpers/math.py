seen = []


def exp(x):
    seen.append(x)
    return 2.0
