"""What there is to try: fixes of some grades and strategies, arguments of ``torch.compile``, settings, blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from patcher.diagnose.asked_settings import CAPTURING, GOING_ON, RECURRENT, asked_settings
from patcher.diagnose.bench import State
from patcher.diagnose.groups import Group, groups
from patcher.diagnose.relations import ZONE, Bundle, bundles
from patcher.options import strategies_of, strategy_key
from patcher.search.judged import FIRST_STRATEGIES, Configuration
from patcher.search.remedies import for_errors
from patcher.search.session import Session
from patcher.settings import TorchSetting

_SLOW = 60.0  # seconds of the first pass, from which on blocks are tried one by one
_COUNTED = 0.2  # of the time left: for counting several sets of fixes
SETTING = ("FC710", "compile-setting")  # the rule that writes settings of PyTorch into the source
_CUDA_GRAPHS = TorchSetting("argument", "mode", "reduce-overhead")
_KERNELS = TorchSetting("argument", "mode", "max-autotune-no-cudagraphs")


@dataclass
class Candidates(Session):
    """A search that knows what may be tried."""

    def _fixes(
        self,
        unsafe: bool,
        strategies: tuple[tuple[str, str], ...] = (),
        under: tuple[TorchSetting, ...] = (),
        select: tuple[str, ...] = (),
    ) -> Configuration:
        """All fixes of these grades. ``under``: settings of PyTorch that are in force with them. ``select``: codes."""
        given = {**self.settings.strategies, **dict(strategies)}
        asked = replace(self.settings, unsafe=unsafe, strategies=given, torch_settings=under)
        asked = replace(asked, select=select) if select else asked
        files = self.analysis.again(asked)
        every, late = bundles(files, self.bench.places), {SETTING[0], ZONE, *self._fusions, *self._costless}
        made = tuple(bundle for bundle in every if bundle.units and bundle.key[0] not in late)
        whole = Configuration(made, under, strategies, tuple(files))
        return whole if len(made) == len(every) else self._of(made, whole)

    @property
    def _fusions(self) -> frozenset[str]:
        """The rules that make one operator of several, which no cause asks for."""
        return frozenset(rule.code for rule in self.analysis.rules if rule.switch)

    @property
    def _costless(self) -> frozenset[str]:
        """The rules for what no run shows, as the names of a checkpoint; the first call gets shorter with some."""
        return frozenset(rule.code for rule in self.analysis.rules if not rule.costs and self.goal != "startup")

    def _forms(self) -> list[Configuration]:
        """Sets of all fixes, one for each strategy that makes a difference."""
        if "fixes" not in self.parts:
            return []
        first = self._first_strategies
        found = [self._fixes(self.settings.unsafe, first)]
        known = {texts(found[0])}
        for strategies in self._telling_strategies(first):
            other = self._fixes(self.settings.unsafe, strategies)
            if texts(other) not in known:
                known.add(texts(other))
                found.append(other)
        asked = self._asked(self.counted) if self.counted is not None and self._may_set else ()
        self._together |= set(asked)
        found += [self._fixes(self.settings.unsafe, first, asked)] if asked else []
        return [one for one in found if one.changed or one.settings]

    def _telling_strategies(self, first: tuple[tuple[str, str], ...]) -> Iterator[tuple[tuple[str, str], ...]]:
        """Yield the strategies with which the rules that have them fix otherwise; ``first``: the usual ones."""
        for key, names in self.strategies.items():
            rules = (rule for rule in self.analysis.rules if strategies_of(rule) and strategy_key(rule) == key)
            codes = tuple(rule.code for rule in rules if self.settings.wants(rule.code, rule.name, rule.switch))
            known = [self._fixes(self.settings.unsafe, first, select=codes)] if codes else []
            for name in names if codes else ():
                strategies = (*(pair for pair in first if pair[0] != key), (key, name))
                alone = self._fixes(self.settings.unsafe, strategies, select=codes)
                if all(texts(alone) != texts(other) for other in known):
                    known.append(alone)
                    yield strategies

    @property
    def _first_strategies(self) -> tuple[tuple[str, str], ...]:
        return tuple((key, name) for key, name in FIRST_STRATEGIES if name in self.strategies.get(key, ()))

    def _ranked(self, forms: Sequence[Configuration]) -> list[Configuration]:
        """The best sets of fixes by what counting says, and the proven part of the first."""
        found = list(forms)
        if len(found) > 1 and self._counting * len(found) < _COUNTED * self._left(0.0):
            if self._is_wide:
                found = [one for one in found if one in self._counts] or found[:1]
            found.sort(key=self._standing)
            least, plain = self._standing(found[0]), [one for one in found if not one.settings][:1]
            found = [one for one in found if self._standing(one).is_near(least)]
            found += [one for one in plain if one not in found]
        proven = self._fixes(unsafe=False)
        if found and proven.changed and texts(proven) not in {texts(one) for one in found[:1]}:
            found.insert(1, proven)
        return found

    def _graphed(self, some: Sequence[Configuration]) -> list[Configuration]:
        """The same with CUDA graphs, where the call is searched."""
        graphs = (_CUDA_GRAPHS,) if "call" in self.parts else ()
        return [replace(one, settings=(*one.settings, *graphs)) for one in some]

    def _asked(self, state: State) -> tuple[TorchSetting, ...]:
        """Return the settings of the whole process that the causes in the original call for."""
        torch = state.results.environment.torch
        asked = asked_settings(groups(state.before, self.bench.places), self.bench.places, torch)
        return tuple(setting for setting in asked if setting.kind in ("config", "member"))

    def _with_fixes(self, more: Sequence[Bundle], like: Configuration) -> Configuration:
        """Return the best configuration, or ``like`` where there is none, with more fixes."""
        start = self.best.configuration if self.best else like
        return self._of((*start.bundles, *more), start)

    def _with(self, setting: TorchSetting) -> Configuration:
        """Return the best configuration with one more setting."""
        start = self.best.configuration if self.best else Configuration()
        same = ("name", "value") if setting.kind == "member" else ("name",)
        others = (o for o in start.settings if any(getattr(o, key) != getattr(setting, key) for key in same))
        return self._of(start.bundles, replace(start, settings=(*others, setting)))

    def _offered(self) -> Iterator[TorchSetting]:
        """What suits this case: modes on a GPU, dynamic shapes after recompiles, what causes ask for.

        Where no cause asks for a setting and the graph still breaks, those that capture more: behind one break may be
        another. Last, graphs that go on in the caller of what breaks.
        """
        assert self.base is not None
        state, tree = self._now()
        calls = "call" in self.parts and not self.counts_decide
        figures = next(iter(state.figures(tree).values()), None)
        if self.base.results.environment.cuda and calls:
            yield from (_CUDA_GRAPHS, _KERNELS)
        if self.best is None and "call" in self.parts:
            yield from for_errors(self.base)
        if self._may_set:
            causes = self._causes()
            found = asked_settings(causes, self.bench.places, self.base.results.environment.torch)
            asked = [setting for setting in found if calls or setting.kind != "argument"]
            broken = [group for group in causes if group.category == "graph break"]
            if broken and not asked:
                asked += [setting for setting in CAPTURING if setting != RECURRENT or self._names_layers]
            if any(event.kind == "breaks" and event.stack[1:] for group in broken for event in group.events):
                asked.append(GOING_ON)
            yield from asked
        if calls and (figures is None or figures.counts.recompiles):
            yield TorchSetting("argument", "dynamic", True)
        if calls and ((self.cold.get(Configuration()) or 0.0) > _SLOW or self.goal == "startup"):
            yield from self._blocks(self.base)

    def _blocks(self, state: State) -> tuple[TorchSetting, ...]:
        """Return its lists of modules that may be compiled one by one, where all cases have the same."""
        lists = {case.blocks for case in state.results.cases}
        return tuple(TorchSetting("blocks", path, cls) for path, cls in next(iter(lists))) if len(lists) == 1 else ()

    @property
    def _may_set(self) -> bool:
        """Whether settings of the whole process are tried: that all else is right with them is an assumption."""
        return self.settings.unsafe and self.settings.wants(*SETTING)

    @property
    def _names_layers(self) -> bool:
        """Whether a file names a recurrent layer; one that stands elsewhere and breaks is a cause by itself."""
        files = [file for path in self.analysis.files if (file := self.bench.places.file(path))]
        return any(word in file.text for file in files for word in ("RNN", "GRU", "LSTM"))

    def _causes(self) -> tuple[Group, ...]:
        state, tree = self._now()
        return groups(state.after if tree == "patched" else state.before, self.bench.places)


def texts(one: Configuration) -> tuple[tuple[str, bytes], ...]:
    """Return the files that a configuration changes, as it makes them."""
    return tuple((file.path, file.after) for file in one.changed)
