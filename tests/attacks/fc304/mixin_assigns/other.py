



class Counting:
    assigned = 0

    def __setattr__(self, name, value):
        type(self).assigned += 1
        super().__setattr__(name, value)
