



shown = [0]


def print(*args):
    shown[0] += 1
