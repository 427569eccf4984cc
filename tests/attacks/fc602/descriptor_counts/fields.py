



class Budget:
    def __init__(self, left):
        self.left = left

    def __get__(self, owner, kind):
        self.left -= 1
        return self.left
