



class Words:
    def __init__(self, table):
        self._table = table

    def __getattr__(self, name):
        if name.startswith("_") or not name.endswith("_id"):
            raise AttributeError(name)
        return self._table[name[:-3]]
