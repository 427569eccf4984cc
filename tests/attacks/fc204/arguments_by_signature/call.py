import inspect
from inspect import signature


def method(model, **given):
    names = set(inspect.signature(model.places).parameters)
    return model.places(**{k: v for k, v in given.items() if k in names}), str(signature(model.places))


def length(model):
    return len(inspect.getfullargspec(model.longer).args)


def itself(model):
    return list(signature(model.direct, follow_wrapped=False).parameters)
