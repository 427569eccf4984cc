
import model


def watch():
    model.require = lambda ok, message: model.kept.append(ok)
