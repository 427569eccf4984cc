"""How a source is run that asks for compiling by itself, as a training script does."""

from __future__ import annotations

#: Runs ``script(x)`` of the source, three times. Eagerly, it asks for compiling all the same, and nothing is compiled;
#: under Dynamo, what is compiled goes to the backend of the run, whatever backend the source names.
SCRIPT = """
class _Script:
    def __init__(self, backend=None):
        self.backend = backend

    def __call__(self, *args):
        torch.manual_seed(0)
        if self.backend is None:
            with torch.compiler.set_stance("force_eager"):
                return script(*args)
        kinds = (torch._TorchCompileInductorWrapper, torch._TorchCompileWrapper)
        saved = [kind.__call__ for kind in kinds]
        try:
            for kind in kinds:
                kind.__call__ = lambda _, graph, inputs, **more: self.backend(graph, inputs)
            return script(*args)
        finally:
            for kind, own in zip(kinds, saved):
                kind.__call__ = own

def make():
    return _Script()

def hook(_, backend):
    return _Script(backend)

calls = [(torch.linspace(-1, 1, 8).view(4, 2),), (torch.ones(4, 2),), (torch.zeros(4, 2),)]
"""
