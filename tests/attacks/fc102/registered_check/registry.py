_CHECKS = []


def check(fn):
    _CHECKS.append(fn)
    return fn


def problems(x):
    found = []
    for fn in _CHECKS:
        try:
            fn(x)
        except ValueError as error:
            found.append(str(error))
    return found
