"""What may be None is a container by its annotation."""

import torch
from torch import nn


from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union


class Net(nn.Module):
    def one(self, parts: Optional[List[torch.Tensor]]):
        assert parts, "nothing"
        return torch.cat(parts)

    def two(self, parts: list[torch.Tensor] | None = None):
        assert parts, "nothing"
        return torch.cat(parts)

    def three(self, parts: Union[List[torch.Tensor], torch.Tensor]):
        assert parts, "nothing"
        return parts[0]

    def four(self, parts: Iterable[torch.Tensor]):
        assert parts, "nothing"
        return torch.cat(list(parts))

    def five(self, parts: List[torch.Tensor] = None):
        assert parts, "nothing"
        return torch.cat(parts)

    def six(self, parts: "Sequence[torch.Tensor]" = ()):
        assert parts, "nothing"
        return torch.cat(tuple(parts))

    def seven(self, parts: Dict[str, torch.Tensor] = None):
        assert parts
        return parts["a"]

    def forward(self, x, which: int):
        if which == 0:
            return self.one([x]), self.two([x]), self.three([x]), self.four([x]), self.five([x]), self.six([x])
        if which == 1:
            return self.one(None)
        if which == 2:
            return self.two()
        if which == 3:
            return self.three(x)
        if which == 4:
            return self.four(p for p in (x, x))
        if which == 5:
            return self.five()
        if which == 6:
            return self.six()
        return self.seven()


# run
unsafe = True


def make():
    return Net()


calls = [(torch.ones(1), which) for which in range(8)]
