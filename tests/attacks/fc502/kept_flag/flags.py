



_kept = []


def keep(flag):
    _kept.append(flag)
    return flag


def kinds():
    return [type(flag).__name__ for flag in _kept]
