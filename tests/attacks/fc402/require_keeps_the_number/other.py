



seen = []


def require(have, want, message):
    if have != want:
        raise ValueError(message)
    seen.append(have)
