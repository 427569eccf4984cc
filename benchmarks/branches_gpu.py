"""What a branch on data costs on a GPU, as it is and as FC101 writes it with ``torch.cond``: docs/results/branches.md.

    python benchmarks/branches_gpu.py [--layers 12] [--width 512] [--rounds 2]

Needs torch and a GPU, nothing of ours. In ``layers`` the branch stands in the ``forward`` of each layer, in ``loop`` in
a loop of the model's own ``forward``, where a graph break gives the whole frame up. Each form runs with the branch
taken and not taken; medians of 30 calls in milliseconds, the forms in turn, ``--rounds`` times.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import torch
import torch._dynamo
from torch import nn


class Layer(nn.Module):
    """A block whose correction is only worked out for batches in which something is marked."""

    def __init__(self, width: int, captured: bool) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.correct, self.captured = nn.Linear(width, width), captured

    def forward(self, x: torch.Tensor, marks: torch.Tensor) -> torch.Tensor:
        """``x``: rows x positions x width; ``marks``: rows."""
        x = x + self.down(nn.functional.gelu(self.up(self.norm(x))))
        if self.captured:

            def x_if_true(x: torch.Tensor) -> torch.Tensor:
                y = self.correct(x).tanh()
                x = x + y * marks[:, None, None]
                return x

            if torch.compiler.is_compiling():
                x = torch.cond((marks > 0).any(), x_if_true, lambda x: x.clone(), (x,))
            elif (marks > 0).any():
                x = x_if_true(x)
        elif (marks > 0).any():
            y = self.correct(x).tanh()
            x = x + y * marks[:, None, None]
        return x


class Layers(nn.Module):
    """The branch stands in each layer."""

    def __init__(self, width: int, depth: int, captured: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, captured) for _ in range(depth))

    def forward(self, x: torch.Tensor, marks: torch.Tensor) -> torch.Tensor:
        """As a layer."""
        for layer in self.layers:
            x = layer(x, marks)
        return x


class Loop(Layers):
    """The branch stands in a loop."""

    def forward(self, x: torch.Tensor, marks: torch.Tensor) -> torch.Tensor:
        """As a layer."""
        for layer in self.layers:
            assert isinstance(layer, Layer)
            x = x + layer.down(nn.functional.gelu(layer.up(layer.norm(x))))
            if layer.captured:

                def x_if_true(x: torch.Tensor, layer: Layer = layer) -> torch.Tensor:
                    y = layer.correct(x).tanh()
                    x = x + y * marks[:, None, None]
                    return x

                if torch.compiler.is_compiling():
                    x = torch.cond((marks > 0).any(), x_if_true, lambda x: x.clone(), (x,))
                elif (marks > 0).any():
                    x = x_if_true(x)
            elif (marks > 0).any():
                y = layer.correct(x).tanh()
                x = x + y * marks[:, None, None]
        return x


def measured(step: Callable[[], object]) -> str:
    """Median, least and most of 30 calls, in milliseconds."""
    for _ in range(6):
        step()
    taken = []
    for _ in range(30):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        taken.append((time.perf_counter() - start) * 1e3)
    return f"{statistics.median(taken):.2f} ({min(taken):.2f} to {max(taken):.2f})"


def stepping(
    run: nn.Module, model: nn.Module, x: torch.Tensor, marks: torch.Tensor, train: bool
) -> Callable[[], object]:
    """One call, with gradients of all weights or with none."""

    def step() -> object:
        if train:
            model.zero_grad()
            return run(x, marks).sum().backward()
        with torch.no_grad():
            return run(x, marks)

    return step


def rows(arguments: argparse.Namespace) -> Iterator[str]:
    """The table, line by line."""
    x = torch.randn(4, 128, arguments.width, device="cuda")
    marks = {"taken": torch.tensor([1.0, 0, 0, 0], device="cuda"), "not taken": torch.zeros(4, device="cuda")}
    for kind in (Layers, Loop):
        models = {c: kind(arguments.width, arguments.layers, c).cuda() for c in (False, True)}
        models[True].load_state_dict(models[False].state_dict())
        for train in (False, True):
            for mode in (None, "reduce-overhead"):
                for turn in range(arguments.rounds):
                    for captured, model in models.items():
                        torch._dynamo.reset()
                        run = torch.compile(model, mode=mode)
                        for told, given in marks.items():
                            form = "`torch.cond`" if captured else "as it is"
                            work = "training" if train else "inference"
                            taken = measured(stepping(run, model, x, given, train))
                            eager = measured(stepping(model, model, x, given, train)) if turn == 0 else ""
                            place = kind.__name__.lower()
                            yield f"| {place} | {work} | {mode or 'default'} | {told} | {form} | {taken} | {eager} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}\n")
    print("| branch in | work | mode | branch | form | compiled, ms | eager, ms |\n|---|---|---|---|---|---|---|")
    for row in rows(arguments):
        print(row, flush=True)


if __name__ == "__main__":
    main()
