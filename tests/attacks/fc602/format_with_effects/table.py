



class Table:
    def __init__(self):
        self.rows = []

    def __format__(self, spec):
        self.rows = [1, 2, 3]
        return format("table", spec)
