import inspect


def call(fn, **given):
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    return fn(**{k: v for k, v in given.items() if k in names})


def spec(fn, **given):
    names = inspect.getfullargspec(fn).args
    return fn(**{k: v for k, v in given.items() if k in names})
