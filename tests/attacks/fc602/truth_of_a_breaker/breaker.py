



class Permits:
    def __init__(self, left):
        self.left = left

    def __bool__(self):
        self.left -= 1
        return self.left > 0
