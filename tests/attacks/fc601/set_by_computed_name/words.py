



class Words:
    def __init__(self, table):
        self._table = table
        self._over = {}

    def __getattr__(self, name):
        if name.startswith("_") or not name.endswith("_id"):
            raise AttributeError(name)
        return self._table["<" + name[:3] + ">"]


def renumber(words, numbers):
    for name, number in numbers.items():
        setattr(words, f"{name}_id", number)
