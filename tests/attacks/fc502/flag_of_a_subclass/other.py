
from model import Attend


class Masked(Attend):
    def flag(self, q, k):
        self.same = super().flag(q, k)
        return self.same & True

    def forward(self, q, k):
        return super().forward(q, k), self.same, self.same is True
