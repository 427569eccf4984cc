"""Compare what the variants of a case have saved, tensor by tensor: ``python differences.py SPEC.json``.

Standard library and torch only.
"""

from __future__ import annotations

import functools
import json
import math
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch

DIFFERENCES = 1000  # that are told; a new one must not be cut off behind those that the original compiled shows too
FLOOR = 1e-3  # a tensor this much smaller than its largest neighbour is measured against the neighbour
REFERENCES = ("float64", "nudged")  # variants of the original that show what rounding does to it
AS_EXACT = 3  # times eager code's distance to float64, as in PyTorch's benchmarks (``torch._dynamo.utils.same``)
FEW, AS_EXACT_OF_FEW = 10, 10  # the same of a tensor of so few elements: its one rounding may be small by chance
REFERENCE = 0.1  # relative: what is further from eager code is no reference for it, as where other numbers were drawn
#: Of its largest value. Where eager code is that far from float64, or from itself with weights moved by one rounding,
#: the tensor is rounding alone (the gradient of a bias before batch norm). Compiled code may hold anything there that
#: is below ``FLOOR`` of the largest neighbour.
ALONE = 0.3
SLIGHT = 10  # times ``FLOOR``: below that beside its largest neighbour, a tensor far from a reference may be rounding
ROUNDED = 1e-3  # relative: what rounding makes of other operators, with changed inputs too
THREADS = 4  # with more, each operator waits for cores that other processes keep busy

_SUMS = " (sums)"
_CALL = re.compile(r"^call \d+ ")  # what a name begins with

Json = dict[str, Any]
Leaves = list[tuple[str, Any]]


@dataclass
class Figures:
    """Differences of floating values, summed up over tensors. Places that are NaN or infinite in both are equal.

    ``exact``: what the tensors are in float64, by name, where that is known. ``as_exact``: the tensors that are about
    as near to that as eager code is: their difference is rounding, and only part of ``largest``. ``by_name``: of each
    tensor the largest relative difference over all calls.
    """

    bitwise: bool = True
    total: float = 0.0
    count: int = 0
    finite: int = 0
    largest: float = 0.0
    relative: float = 0.0
    worst: str = ""
    epsilon: float = 0.0
    exact: dict[str, Any] = field(default_factory=dict)
    as_exact: set[str] = field(default_factory=set)
    by_name: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, ours: Any, theirs: Any, scale: float) -> None:
        """Take in two real floating tensors of one shape; differences are relative to ``scale`` at least."""
        self.see(ours)
        a, b = ours.double(), theirs.double()
        if not bool((((a == b) & (torch.signbit(a) == torch.signbit(b))) | (a.isnan() & b.isnan())).all()):
            self.bitwise = False
        finite = a.isfinite() & b.isfinite()
        apart = torch.where(finite, a - b, torch.zeros_like(a)).abs()
        if not apart.numel():
            return
        self.count += apart.numel()
        self.finite += int(finite.sum())
        most = float(apart.max())
        relative = _quotient(most, max(_magnitude(ours), scale))
        if relative > FLOOR and self._is_as_exact(name, a, b, scale):
            self.largest = max(self.largest, most)
            return
        self.total += float(apart.sum())
        self._note(name, relative)
        if not self.worst or relative > self.relative:
            self.worst = name
        self.largest, self.relative = max(self.largest, most), max(self.relative, relative)

    def _is_as_exact(self, name: str, ours: Any, theirs: Any, scale: float) -> bool:
        exact = self.exact.get(name)
        if exact is None or exact.shape != ours.shape or not exact.is_floating_point():
            return False
        own, other = (exact.double() - tensor for tensor in (ours, theirs))
        (most, mean), (their_most, their_mean) = (
            (float(apart.abs().max()), float(apart.square().mean().sqrt())) for apart in (own, other)
        )
        usual = most <= REFERENCE * max(_magnitude(exact), scale)  # false for NaN
        size = max(map(_magnitude, (exact, ours, theirs)))
        usual = usual or size <= SLIGHT * scale
        alone = most >= ALONE * _magnitude(ours) and size <= scale
        times = AS_EXACT if exact.numel() > FEW else AS_EXACT_OF_FEW
        rounded = alone or (usual and their_mean <= times * mean and their_most <= times * most)
        self.as_exact |= {name.removesuffix(_SUMS)} if rounded else set()
        return rounded

    def add_same(self, name: str, tensor: Any) -> None:
        """Take in a floating tensor that has the same bits in both: most of them have."""
        self.see(tensor)
        if not tensor.numel():
            return
        self.count += tensor.numel()
        self.finite += int(tensor.isfinite().sum())
        self.worst = self.worst or name

    def add_sums(self, name: str, ours: Any, theirs: Any) -> None:
        """Take in sums over all elements of a tensor of which there is only a sample."""
        relative = _quotient(float((ours - theirs).abs().max()), _magnitude(ours))
        if relative > FLOOR and self._is_as_exact(name + _SUMS, ours, theirs, 0.0):
            return
        self._note(name, relative)
        if relative > self.relative:
            self.relative, self.worst = relative, name

    def _note(self, name: str, relative: float) -> None:
        own = _CALL.sub("", name)
        self.by_name[own] = max(self.by_name.get(own, 0.0), relative)

    def see(self, tensor: Any) -> None:
        """Note the precision of a tensor."""
        if tensor.is_floating_point() or tensor.is_complex():
            self.epsilon = max(self.epsilon, torch.finfo(tensor.dtype).eps)

    def told(self) -> Json:
        """For JSON; None for figures of which there are none."""
        any_ = self.count > 0
        return {
            "bitwise": self.bitwise,
            "mae": self.total / self.count if any_ else None,
            "max": self.largest if any_ else None,
            "relative": self.relative if any_ else None,
            "worst": self.worst if self.relative else "",
            "finite": self.finite if any_ else None,
        }


def _quotient(apart: float, magnitude: float) -> float:
    return apart / magnitude if magnitude else math.inf if apart else 0.0


def _magnitude(tensor: Any) -> float:
    if not tensor.numel() or not (tensor.is_floating_point() or tensor.is_complex()):
        return 0.0
    tensor = tensor.float() if tensor.itemsize == 1 else tensor
    return float(torch.where(tensor.isfinite(), tensor, torch.zeros_like(tensor)).abs().max())


def compare(job: Json) -> list[Json]:
    """Every variant against the original in eager mode, and all against float64 where there is one.

    What is patched and compiled also against itself in eager mode: that of the original is its distance anyway.
    """
    base = Path(job["folder"])
    ok = [variant for variant in job["variants"] if variant["status"] == "ok"]
    reference = base / ok[0]["folder"]
    exact, nudged = (next((base / v["folder"] for v in ok if v["kind"] == kind), None) for kind in REFERENCES)
    patched = next((base / v["folder"] for v in ok if (v["tree"], v["kind"]) == ("patched", "eager")), None)
    told = []
    for variant in ok:
        if variant["kind"] in REFERENCES:
            continue
        own = base / variant["folder"]
        row: Json = {key: variant[key] for key in ("tree", "kind", "mode")}
        if variant is not ok[0]:  # what was not patched may have the folder of the original
            excuse = nudged or (exact if job.get("excused") else None) if variant["kind"] == "compiled" else None
            row |= _compared(reference, own, variant["kind"] == "eager", job.get("weights", True), excuse)
        row["float64"] = _distance(exact, own) if exact else None
        if patched and (variant["tree"], variant["kind"]) == ("patched", "compiled"):
            row["own_eager"] = _distance(patched, own)
        told.append(row)
    return told


def _compared(reference: Path, own: Path, aliasing: bool, weights: bool, exact: Path | None = None) -> Json:
    outputs, gradients, state = Figures(), Figures(), Figures()
    said: list[str] = list(_weights_apart(reference, own)) if weights else []
    graded = stated = False
    files = {file.name: None for folder in (reference, own) for file in sorted(folder.glob("pass*.pt"), key=_order)}
    for file in files:
        number, what = Path(file).stem.removeprefix("pass").split("-")
        where = f"{what.replace('call', 'call ')}" + ("" if number == "1" else f" (repeated, pass {number})")
        if not (reference / file).exists() or not (own / file).exists():
            said.append(f"{where}: {'is new' if (own / file).exists() else 'is missing'}")
            continue
        a, b = _load(reference / file), _load(own / file)
        known = _load(exact / file) if exact is not None and (exact / file).exists() else None
        if what == "state":
            state.exact = _named("after the calls" + ("" if number == "1" else f" (pass {number})"), known)
            stated = stated or bool(a or b)
            said += _apart(state, a, b, "after the calls" + ("" if number == "1" else f" (pass {number})"))
            continue
        (returned, given), (their_returned, their_given) = _parted(a["leaves"]), _parted(b["leaves"])
        for name, leaf in filter(_is_opaque, returned):
            raise ValueError(f"{where} {name}: {leaf}")  # two of them are not equal for that
        outputs.exact = _named(where, known and known["leaves"])
        gradients.exact = _named(f"{where} gradient of", known and known["gradients"])
        said += _apart(outputs, returned, their_returned, where)
        said += _apart(outputs, *_touched(outputs, given, their_given), where)
        if a["gradients"] or b["gradients"]:
            graded = True
            said += _apart(gradients, a["gradients"], b["gradients"], f"{where} gradient of")
        if aliasing and a["shared"] != b["shared"]:
            said.append(f"{where} aliasing: {_groups(a['shared'])} became {_groups(b['shared'])}")
    if aliasing:
        a, b = (dict(_load(folder / "facts.pt")) for folder in (reference, own))
        both = [name for name in a if name in b]
        said += _apart(state, [(n, a[n]) for n in both], [(n, b[n]) for n in both], "in eager mode")
        stated = stated or state.count > 0
    return {
        **outputs.told(),
        "epsilon": max(outputs.epsilon, _told_of_weights(reference).get("epsilon", 0.0)),
        "differences": list(dict.fromkeys(said))[:DIFFERENCES],
        "as_exact": sum(len(one.as_exact) for one in (outputs, gradients, state)),
        **({} if weights else {"by_name": outputs.by_name}),
        "gradients": gradients.told() if graded else None,
        "state": state.told() if stated else None,
    }


def replayed(job: Json) -> Json:
    """Compare what calls with changed inputs gave, original and patched.

    ``inputs``: those with which both ran, and could be compared; ``raising``: those with which only the original
    raises; ``failing``: of another size, dtype or mode, those with which only patched code raises; ``zeros``: those
    with which gradients are zeros in place of none; ``different``: those with which anything else is not the same, and
    what.
    """
    reference, own = (Path(folder) for folder in job["folders"])
    inputs, raising, failing, different, zeros = 0, list[str](), list[str](), list[str](), list[str]()
    for number, name, elsewhere in job["changes"]:
        file = f"pass1-call{number}.pt"
        if not (reference / file).exists() or not (own / file).exists():
            continue  # the time was over, or the memory
        a, b = _load(reference / file), _load(own / file)
        raised, raises = ("gradients" not in record for record in (a, b))
        if raised and not raises:
            raising.append(name)
        elif raises and not raised:
            told = f"{name}: raises {dict(b['leaves'])['raised']}"
            (failing if elsewhere else different).append(told)
        elif not raised and not any(map(_is_opaque, (*a["leaves"], *b["leaves"]))):
            inputs += 1
            states = [_load(folder / f"pass1-state{number}.pt") for folder in (reference, own)]
            leaves = zip(_parted(a["leaves"]), _parted(b["leaves"]), strict=True)
            theirs, none = dict(b["gradients"]), {name for name, leaf in a["gradients"] if leaf is None}
            graded = {name: None if name in none and _is_zero(leaf) else leaf for name, leaf in theirs.items()}
            zeros += [name] * any(leaf is None and theirs[place] is not None for place, leaf in graded.items())
            pairs = (*leaves, (a["gradients"], [*graded.items()]), states)
            said = _beyond_rounding(pairs, a.get("epsilon", 0.0))
            different += [f"{name}: {one}" for one in islice(said, 1)]
    return {"inputs": inputs, "raising": raising, "failing": failing, "zeros": zeros, "different": different}


def _is_zero(leaf: Any) -> bool:
    """Whether a gradient moves nothing."""
    if isinstance(leaf, dict):
        return _is_zero(leaf["sample"]) and _is_zero(leaf["sums"])
    return torch.is_tensor(leaf) and not bool(leaf.count_nonzero())


def _is_opaque(leaf: tuple[str, Any]) -> bool:
    """Whether it is what the worker says of a tensor that it cannot take apart."""
    return isinstance(leaf[1], str) and leaf[1].startswith("<tensor that cannot be compared")


def _beyond_rounding(pairs: Iterable[Sequence[Leaves]], epsilon: float) -> Iterator[str]:
    """Yield what differs by more than rounding makes of it; ``epsilon``: of the type that was computed in."""
    for ours, theirs in pairs:
        figures = Figures()
        yield from (said.strip() for said in _apart(figures, ours, theirs, ""))
        if figures.relative > max(ROUNDED, 16 * max(figures.epsilon, epsilon)):
            yield f"{figures.worst.strip()}: differs by {figures.relative:.2g} relative to its largest value"


def _named(where: str, leaves: Leaves | None) -> dict[str, Any]:
    """The tensors by the names that ``_apart`` gives them; of those that are not kept whole the sample and the sums."""
    found: dict[str, Any] = {}
    for name, leaf in leaves or ():
        if isinstance(leaf, dict):
            found |= {f"{where} {name}": leaf["sample"], f"{where} {name}{_SUMS}": leaf["sums"]}
        elif torch.is_tensor(leaf):
            found[f"{where} {name}"] = leaf
    return found


def _parted(leaves: Leaves) -> tuple[Leaves, Leaves]:
    """What was returned, and the arguments: each is measured against its own neighbours."""
    returned = [leaf for leaf in leaves if not leaf[0].startswith("argument")]
    return returned, [leaf for leaf in leaves if leaf[0].startswith("argument")]


def _touched(figures: Figures, ours: Leaves, theirs: Leaves) -> tuple[Leaves, Leaves]:
    """Without what has the same bits in both: arguments that are only read would thin out the mean error."""
    a, b = dict(ours), dict(theirs)
    for name in [name for name in a if name in b and _same_bits(a[name], b[name])]:
        figures.see(a.pop(name))
        del b[name]
    return list(a.items()), list(b.items())


def _same_bits(ours: Any, theirs: Any) -> bool:
    if not torch.is_tensor(ours) or not torch.is_tensor(theirs) or ours.is_quantized:
        return False
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return False
    return bool(torch.equal(ours.flatten().view(torch.uint8), theirs.flatten().view(torch.uint8)))


def _order(file: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", file.stem))


def _load(file: Path) -> Any:
    return torch.load(file, weights_only=True, map_location="cpu")


def _groups(shared: list[list[str]]) -> str:
    return " and ".join(" with ".join(group) for group in shared) or "none"


def _told_of_weights(folder: Path) -> Json:
    file = folder / "weights.json"  # there is none beside single calls
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


def _weights_apart(reference: Path, own: Path) -> Iterator[str]:
    both = [_told_of_weights(folder) for folder in (reference, own)]
    (a, b), (kind, other) = ([told[key] for told in both] for key in ("digests", "kinds"))
    for name in dict.fromkeys((*a, *b)):
        if name not in a or name not in b:
            yield f"weights after build(): {name} {'is new' if name in b else 'is gone'}"
        elif kind[name] != other[name]:
            yield f"weights after build(): {name} was {kind[name]} and is {other[name]}"
        elif a[name] != b[name]:
            yield f"weights after build(): {name} has other values"
    if kind == other and list(kind) != list(other):
        yield "weights after build(): are in another order"


def _apart(figures: Figures, ours: Any, theirs: Any, where: str) -> Iterator[str]:
    """Take two lists of named leaves into ``figures``; yield what is different other than in floating values."""
    a, b = dict(ours), dict(theirs)

    @functools.cache
    def scale() -> float:
        found = [leaf["sample"] if isinstance(leaf, dict) else leaf for leaf in a.values()]
        return FLOOR * max((_magnitude(leaf) for leaf in found if torch.is_tensor(leaf)), default=0.0)

    for name in dict.fromkeys((*a, *b)):
        place = f"{where} {name}"
        if name not in a or name not in b:
            yield f"{place}: {'is new' if name in b else 'is missing'}"
            figures.bitwise = False
        else:
            yield from _leaf_apart(figures, a[name], b[name], place, scale)


def _leaf_apart(figures: Figures, ours: Any, theirs: Any, place: str, scale: Callable[[], float]) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        yield from _samples_apart(figures, ours, theirs, place, scale)
        return
    if not torch.is_tensor(ours) or not torch.is_tensor(theirs):
        if isinstance(ours, float) and isinstance(theirs, float):
            ours, theirs = (torch.tensor(value, dtype=torch.double) for value in (ours, theirs))
        else:
            if torch.is_tensor(ours) or torch.is_tensor(theirs) or ours != theirs or type(ours) is not type(theirs):
                figures.bitwise = False
                yield f"{place}: {_short(ours)} became {_short(theirs)}"
            return
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        figures.bitwise = False
        yield f"{place}: {_short(ours)} became {_short(theirs)}"
        return
    if ours.is_floating_point() and ours.itemsize == 1:
        figures.see(ours)
        ours, theirs = ours.float(), theirs.float()  # there is little that torch does with float8
    if not (ours.is_floating_point() or ours.is_complex()):
        if not torch.equal(ours, theirs):
            figures.bitwise = False
            yield f"{place}: other values ({_short(ours)})"
        return
    if ours.is_complex():
        ours, theirs = torch.view_as_real(ours), torch.view_as_real(theirs)
    if _same_bits(ours, theirs):
        figures.add_same(place, ours)
        return
    for word, test in (("NaN", torch.isnan), ("infinity", torch.isposinf), ("negative infinity", torch.isneginf)):
        new, gone = test(theirs) & ~test(ours), test(ours) & ~test(theirs)
        if bool(new.any()) or bool(gone.any()):
            figures.bitwise = False
            yield (
                f"{place}: {word} in {int(new.sum())} elements where the original has none"
                if bool(new.any())
                else f"{place}: no {word} in {int(gone.sum())} elements where the original has it"
            )
    figures.add(place, ours, theirs, scale())


def _samples_apart(figures: Figures, ours: Json, theirs: Json, place: str, scale: Callable[[], float]) -> Iterator[str]:
    """Tensors too large to be kept whole: the digest decides about equal bits, a sample gives the figures."""
    figures.bitwise = figures.bitwise and ours["digest"] == theirs["digest"]
    if ours["shape"] != theirs["shape"]:
        yield f"{place}: {_short(ours)} became {_short(theirs)}"
        return
    sample = ours["sample"]
    if not (sample.is_floating_point() or sample.is_complex()) and ours["digest"] != theirs["digest"]:
        yield f"{place}: other values ({_short(ours)})"
    if sample.dtype == theirs["sample"].dtype:
        figures.add_sums(place, ours["sums"], theirs["sums"])
    for word in ("NaN", "infinity"):
        if ours[word] != theirs[word]:
            yield f"{place}: {word} in {theirs[word]} elements, in the original in {ours[word]}"
    yield from _leaf_apart(figures, ours["sample"], theirs["sample"], place, scale)


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['sample'].dtype} {tuple(value['shape'])}".replace("torch.", "")
    if torch.is_tensor(value):
        return f"{value.dtype} {tuple(value.shape)}".replace("torch.", "")
    return repr(value)[:60]


def _distance(exact: Path, own: Path) -> float | None:
    """The mean absolute distance of the first pass's floating outputs to others, such as those in float64."""
    total, count = 0.0, 0
    for file in [file for file in exact.glob("pass1-call*.pt") if (own / file.name).exists()]:
        a, b = dict(_load(file)["leaves"]), dict(_load(own / file.name)["leaves"])
        for name, leaf in a.items():
            other = b.get(name)
            if (
                isinstance(leaf, torch.Tensor)
                and isinstance(other, torch.Tensor)
                and leaf.dtype.is_floating_point
                and leaf.shape == other.shape
            ):
                apart = (leaf.double() - other.double()).abs()
                apart = apart[apart.isfinite()]
                total, count = total + float(apart.sum()), count + apart.numel()
    return total / count if count else None


def main() -> None:
    """Write ``result.json`` beside the spec."""
    file = Path(sys.argv[1])
    torch.set_num_threads(min(THREADS, torch.get_num_threads()))
    try:
        job = json.loads(file.read_text(encoding="utf-8"))["job"]
        made = replayed(job) if "changes" in job else {"comparisons": compare(job)}
        result: Json = {"status": "ok", "message": "", **made}
    except Exception as error:
        traceback.print_exc()
        result = {"status": "error", "message": f"{type(error).__name__}: {str(error).partition(chr(10))[0][:400]}"}
    file.with_name("result.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
