_TRACKED = []


def track(tensor):
    _TRACKED.append(tensor)


def advance():
    for tensor in _TRACKED:
        tensor -= 1
