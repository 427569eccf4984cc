



class Pairs:
    def __init__(self, x):
        self.x = x

    def nonzero(self):
        return {"values": self.x, "places": None}
