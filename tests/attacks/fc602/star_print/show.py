



_shown = []


def print(*args):
    _shown.append(args)


def count():
    return len(_shown)
