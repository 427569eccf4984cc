from model import Net


class Taken(Net):
    def place(self, out, i, n, value):
        super().place(out, i, n, value)
        self.sizes[i + 1 :] = 1
