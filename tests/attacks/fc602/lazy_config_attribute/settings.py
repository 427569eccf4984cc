



class Lazy:
    def __init__(self):
        self.loaded = False

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        self.loaded = True
        return 3
