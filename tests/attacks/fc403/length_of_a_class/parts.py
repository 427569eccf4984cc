



class Part:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        self.n -= 1
        return self.n + 1
