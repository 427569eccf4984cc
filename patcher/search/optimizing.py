"""Search for the fastest verified configuration: all fixes first, then call arguments and settings, then fewer fixes.

A configuration is a set of fixes with arguments of ``torch.compile``. It is kept only when compiled code ran, computed
what the original computes eagerly, and is faster than what was best so far beyond noise. At any moment the best one is
known, and handed to ``keep``. With the goal "graphs" counts decide in place of times.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Literal, NamedTuple

from patcher.analysis import Analysis
from patcher.diagnose.asked_settings import CAPTURING, GOING_ON, RECURRENT, asked_settings
from patcher.diagnose.bench import Bench, State, with_faster
from patcher.diagnose.better import TIMED, Standing, captures_less, operators, standing
from patcher.diagnose.counted import counting
from patcher.diagnose.events import Seen
from patcher.diagnose.extents import CANDIDATES, distinct, extents, pays
from patcher.diagnose.groups import Group, groups
from patcher.diagnose.relations import ZONE, Bundle, bundles, evidence, findings, related, traced
from patcher.harness import plan
from patcher.harness.compare import apart, chosen
from patcher.harness.measured import Figures, Replayed, Tree
from patcher.observed import observations
from patcher.options import strategies_of, strategy_key
from patcher.results import FileResult
from patcher.search.pool import Pool, Trial, room_of
from patcher.search.remedies import OF_MACHINE, for_errors, named
from patcher.search.verdict import GRAPHS, UNITS, Dropped, Fate, Grade, Kept, Pair, Verdict, counts, relative
from patcher.settings import Settings, TorchSetting, Unit

SHARE = 0.03  # of the time: quartiles of few passes are narrow by chance, and less than this is no gain
_PRUNED = 0.15  # of the time, where all counts are the same: less is the machine's doing
_TURNS = 2  # until something is taken for slower although all its counts are the same
_ROUGH = 0.05  # of what is measured once
_COLD = 0.15  # of the seconds of compiling, which are measured once too
_RESERVED = 0.15  # of the budget: for measuring the end once more, beside the original
_MOST_PRUNED = 16  # fixes that are left out one by one
_CLOSE = 1.3  # times the fastest of a concurrent round: it may be as fast alone
_MOST_ALONE = 3  # configurations that are measured alone after each round
_SLOW = 60.0  # seconds of the first pass, from which on blocks are tried one by one
_GROWTH = 2  # times that new fixes are looked for where the fixes so far have changed what is compiled
_COUNTED = 0.2  # of the time left: for counting several sets of fixes
_HOPELESS = 0.5  # eager code takes less than this share of the time of compiled code
_SLOWED = 1.2  # times as long as before: the machine is slower now
_ROUNDS = 3  # of settings: behind one break may be another
SETTING = ("FC710", "compile-setting")  # the rule that writes settings of PyTorch into the source
_FIRST_STRATEGIES = (("dynamic-dim", "maybe"),)  # strategies to begin with: marks that keep nothing from being compiled
_PATIENCE = 1.5  # times the seconds until the first configuration was verified: for the others
_FEWEST_SECONDS = 20.0  # that each has
_REPLAYED, _MOST_REPLAYED = 0.05, 20.0  # of the budget, and seconds: for changed inputs
_UNSETTLED = "still recompiles in the last pass, or fell back to eager"
_CUDA_GRAPHS = TorchSetting("argument", "mode", "reduce-overhead")
_KERNELS = TorchSetting("argument", "mode", "max-autotune-no-cudagraphs")


@dataclass(frozen=True)
class Configuration:
    """What is measured. ``bundles``: fixes; ``settings``: of PyTorch; ``strategies``: how rules fix.

    ``files``: what the fixes make of the source, () for the original.
    """

    bundles: tuple[Bundle, ...] = ()
    settings: tuple[TorchSetting, ...] = ()
    strategies: tuple[tuple[str, str], ...] = ()
    files: tuple[FileResult, ...] = ()

    @property
    def changed(self) -> tuple[FileResult, ...]:
        """The files that differ from the original."""
        return tuple(file for file in self.files if file.changed)

    @property
    def told(self) -> str:
        """In a few words."""
        number = len(self.bundles)
        fixes = [f"{number or 'no'} fix{'' if number == 1 else 'es'}"] if number or self.settings else []
        fixes += [f"{key}={name}" for key, name in self.strategies if (key, name) not in _FIRST_STRATEGIES]
        return ", ".join([*fixes, *(setting.told for setting in self.settings)]) or "the original"


class Span(NamedTuple):
    """What a goal measures, with its quartiles; the less, the better. ``busy``: CPU ms, where they are known.

    ``counts``: of the goal "graphs", in place of times, with the ``operators`` that graphs hold.
    """

    low: float
    median: float
    high: float
    busy: float | None = None
    counts: Standing | None = None
    operators: float = 0.0


class _Reason(NamedTuple):
    """Why something is not kept."""

    text: str
    outcome: Fate = "not better"


_NOT_TRIED = _Reason("not tried: the budget was used up", "not tried")


@dataclass(frozen=True)
class Best:
    """A verified configuration, and how it was measured."""

    configuration: Configuration
    state: State
    span: Span


@dataclass
class Optimizer:
    """One search. ``options``: how to measure, with the backend that the user will use.

    ``budget``: seconds, since ``began``, a time of ``time.monotonic``.
    ``keep``: is told each new best. ``say``: what is being tried. ``strategies``: for each rule's key its names.
    ``at_once``: how many configurations can be measured concurrently, where that is known; else counting shows it.
    ``parts``: what is searched: "fixes" in the source, the "call" that compiles. ``against_eager``: whether what eager
    does as fast is not worth compiling.
    """

    analysis: Analysis
    settings: Settings
    bench: Bench
    options: plan.Options
    budget: float
    goal: str = "latency"
    strategies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parts: frozenset[str] = frozenset({"fixes", "call"})
    against_eager: bool = True
    keep: Callable[[Best], None] = lambda best: None
    say: Callable[[str], None] = lambda line: None
    at_once: int = 1
    best: Best | None = None
    base: State | None = None
    counted: State | None = None
    dropped: list[Dropped] = field(default_factory=list)
    replayed: Replayed | None = None
    seconds_to_first: float | None = None
    began: float = field(default_factory=time.monotonic)
    _counts: dict[Configuration, State] = field(default_factory=dict)
    _cold: dict[Configuration, float | None] = field(default_factory=dict)  # of what was compiled for the first time
    _contended: list[tuple[Configuration, Span]] = field(default_factory=list)  # measured concurrently
    _failed_together: list[tuple[Configuration, _Reason]] = field(default_factory=list)  # in a concurrent round
    _counting: float = 0.0  # seconds that the last count took
    _patience: float = math.inf  # seconds that a configuration of the first round has
    _together: set[TorchSetting] = field(default_factory=set)  # settings that were tried together
    _tried: set[Unit] = field(default_factory=set)  # fixes that were tried without settings, or grown
    _pool: Pool[tuple[Configuration, bool]] = field(init=False)

    def __post_init__(self) -> None:
        self._pool = Pool(self.bench)
        counted = self.options.backend not in TIMED
        self.goal = GRAPHS if counted else self.goal
        warm = not counted and self.goal != "startup"
        self.options = replace(self.options, warm_cache=warm, untimed=counted, eager_untimed=counted)

    def run(self) -> None:
        """Search until nothing is left to try, or the budget is over. What is best is in ``best``."""
        narrow = bool(self.bench.elsewhere) or self._counts_decide
        self._pool.at_once = 1 if narrow else self.at_once
        if not self._is_wide:
            self._see(self._count(Configuration()))
            self._pool.at_once = 1 if narrow else room_of(self._count(Configuration()))
        if self._is_wide:
            forms = list[Configuration]()
            self._weigh_each(self._everything(forms))
            self._time_finalists(None)
        else:
            forms = self._ranked(self._forms())
            for form in forms[:3] or [Configuration()]:
                if self.best is None and (self.base is None or not self._is_over(_RESERVED + 0.35)):
                    self._round([form], _RESERVED)
        if self.base is None or self._span(self.base, "original", eager=True) is None:
            return
        if self.best is None and forms and not self._is_over(0.4):
            self._those_that_verify(min(forms, key=lambda one: len(one.settings)))
        self._grow(forms)
        self._try_arguments()
        self._grow(forms)
        self._try_zones()
        self._prune()
        self._replay()
        self._confirm()
        self._try_fusions()

    @property
    def _counts_decide(self) -> bool:
        return self.goal == GRAPHS

    @property
    def _is_wide(self) -> bool:
        """Whether several things are measured at the same time."""
        return self._pool.at_once > 1

    # --- what there is to try ---------------------------------------------------------------------------------------

    def _looking(self, options: plan.Options) -> plan.Options:
        """The same, with a look at what the expressions of the project hold, where rules may take that for granted."""
        return replace(options, observed=self.analysis.files if self.settings.unsafe or self.settings.measured else ())

    def _see(self, counted: State) -> None:
        """Take what counting the original has shown as evidence for the rules."""
        self.counted = counted
        seen = [case.observations for case in counted.results.cases if case.observations]
        self.settings = replace(self.settings, observed=observations(*seen))
        self._learn(counted, counted.before)

    def _learn(self, state: State, seen: Sequence[Seen]) -> None:
        """Take what a run has shown as evidence, beside what was known before."""
        found, known = groups(seen, self.bench.places), self.settings
        models = tuple(dict.fromkeys(name for case in state.results.cases for name in case.classes))
        varied = tuple(dict.fromkeys((*known.evidence, *evidence(found, self.bench.places))))
        ran = known.traced | traced(found, self.bench.places)
        self.settings = replace(known, evidence=varied, traced=ran, models=models)

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
        every, late = bundles(files, self.bench.places), {SETTING[0], ZONE, *self._fusions}
        made = tuple(bundle for bundle in every if bundle.units and bundle.key[0] not in late)
        whole = Configuration(made, under, strategies, tuple(files))
        return whole if len(made) == len(every) else self._of(made, whole)

    @property
    def _fusions(self) -> frozenset[str]:
        """The rules that make one operator of several, which no cause asks for."""
        return frozenset(rule.code for rule in self.analysis.rules if rule.switch)

    def _of(self, kept: Sequence[Bundle], like: Configuration) -> Configuration:
        """The same with these fixes only."""
        units = frozenset(unit for bundle in kept for unit in bundle.units)
        files = tuple(self.analysis.again(replace(self.settings_of(like), only=units))) if units else ()
        return Configuration(tuple(kept), like.settings, like.strategies, files)

    def settings_of(self, one: Configuration) -> Settings:
        """Return the rules' settings for a configuration: its strategies, and the PyTorch settings in force."""
        given = {**self.settings.strategies, **dict(one.strategies)}
        under = tuple(setting for setting in one.settings if setting.kind in ("config", "member"))
        return replace(self.settings, strategies=given, torch_settings=under)

    def _forms(self) -> list[Configuration]:
        """Sets of all fixes, one for each strategy that makes a difference."""
        if "fixes" not in self.parts:
            return []
        first = self._first_strategies
        found = [self._fixes(self.settings.unsafe, first)]
        known = {_texts(found[0])}
        for strategies in self._telling_strategies(first):
            other = self._fixes(self.settings.unsafe, strategies)
            if _texts(other) not in known:
                known.add(_texts(other))
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
                if all(_texts(alone) != _texts(other) for other in known):
                    known.append(alone)
                    yield strategies

    @property
    def _first_strategies(self) -> tuple[tuple[str, str], ...]:
        return tuple((key, name) for key, name in _FIRST_STRATEGIES if name in self.strategies.get(key, ()))

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
        if found and proven.changed and _texts(proven) not in {_texts(one) for one in found[:1]}:
            found.insert(1, proven)
        return found

    def _everything(self, forms: list[Configuration]) -> Iterator[tuple[Configuration, State | None]]:
        """Measure concurrently, and count at the same time; yield what was measured as it ends.

        The original and all fixes with CUDA graphs begin at once, and what counting asks for when it was counted.
        ``forms`` is filled with the sets of fixes, the best first.
        """
        original, begun, uncounted = Configuration(), dict[object, Configuration](), set[Configuration]()

        def begin(some: Sequence[Configuration]) -> None:
            for one in some:
                if begun.setdefault((_texts(one), one.settings), one) is one:
                    self._add(one, self.options, reserved=_RESERVED)

        def count_forms() -> None:
            forms[:] = self._forms()
            uncounted.update(forms)
            for form in forms:
                self._add(form, counting(self.options), counts=True, reserved=0.3)
            if not forms:
                begin(self._graphed([original]))

        begin([original])
        if self.counted is not None:
            count_forms()
        else:
            self._add(original, self._looking(counting(self.options)), counts=True, reserved=_RESERVED)
            guessed = self._fixes(self.settings.unsafe, self._first_strategies)
            begin(self._graphed([guessed]) if guessed.changed and "fixes" in self.parts else [])
        for (one, counted), state in self._pool.results(
            lambda: self.base is not None and self._is_over(_RESERVED), self._told_of, self._is_too_slow
        ):
            if not counted:
                yield one, state
                continue
            if state is not None:
                self._counts[one] = state
            uncounted.discard(one)
            if one == original and state is not None:
                self._see(state)
                count_forms()
            elif not uncounted:
                forms[:] = self._ranked(forms)
                begin([*self._graphed([*forms, original]), *forms[:1]])

    def _graphed(self, some: Sequence[Configuration]) -> list[Configuration]:
        """The same with CUDA graphs, where the call is searched."""
        graphs = (_CUDA_GRAPHS,) if "call" in self.parts else ()
        return [replace(one, settings=(*one.settings, *graphs)) for one in some]

    def _is_too_slow(self, asked: tuple[Configuration, bool], seconds: float) -> bool:
        """Whether something is not waited for any more: another was verified, in far less time."""
        one, counted = asked
        slow = not counted and one != Configuration() and seconds > self._patience
        if slow:
            self._drop(one, f"stopped: not compiled and measured in {seconds:.0f} s")
        return slow

    def _standing(self, one: Configuration) -> Standing:
        return standing(*self._count_of(one))

    def _count_of(self, one: Configuration) -> tuple[State, Tree]:
        return self._count(one), "patched" if one.changed or one.settings else "original"

    # --- stages -----------------------------------------------------------------------------------------------------

    def _asked(self, state: State) -> tuple[TorchSetting, ...]:
        """Return the settings of the whole process that the causes in the original call for."""
        torch = state.results.environment.torch
        asked = asked_settings(groups(state.before, self.bench.places), self.bench.places, torch)
        return tuple(setting for setting in asked if setting.kind in ("config", "member"))

    def _add(self, one: Configuration, options: plan.Options, counts: bool = False, reserved: float = 0.0) -> None:
        limit = min(options.seconds, max(20.0, self._left(reserved)))
        limited = replace(
            options, quick=True, repeat=False, seconds=limit, until=self.began + self.budget * (1 - reserved)
        )
        self._pool.add(Trial((one, counts), one.changed, one.settings, limited))

    def _round(self, batch: Sequence[Configuration], reserved: float) -> None:
        """Measure configurations and keep the best. Those measured concurrently are measured again alone."""
        incumbent = self.best
        for one in batch:
            self._add(one, self.options, reserved=reserved)
        results = self._pool.results(lambda: self.base is not None and self._is_over(reserved), self._told_of)
        self._weigh_each((one, state) for (one, _), state in results)
        if self._is_wide:
            self._time_finalists(incumbent)

    def _weigh_each(self, results: Iterable[tuple[Configuration, State | None]]) -> None:
        """Keep or drop what was measured, as soon as the original was."""
        ended: list[tuple[Configuration, State]] = []
        incumbent = self.best
        for one, state in results:
            if state is None:
                self._drop(one, _NOT_TRIED)
                continue
            ended.append((one, state))
            if self.base is None and (not self._is_wide or one == Configuration()):
                self._set_base(state)
            for each in ended if self.base is not None else ():
                self._weigh(*each, incumbent)
            ended = [] if self.base is not None else ended
            if self._contended and self._patience == math.inf:
                self._patience = max(_FEWEST_SECONDS, _PATIENCE * self._pool.took)

    def _set_base(self, state: State) -> None:
        self.base = state
        self._cold.setdefault(Configuration(), _cold(_figures(state, "original")))

    def _count_all(self, some: Sequence[Configuration], reserved: float) -> None:
        """Count configurations, concurrently where there is room."""
        for one in some if self._is_wide else ():
            self._add(one, counting(self.options), counts=True, reserved=reserved)
        for (one, _), state in self._pool.results(lambda: self._is_over(reserved), self._told_of):
            if state is not None:
                self._counts[one] = state

    def _told_of(self, asked: tuple[Configuration, bool]) -> None:
        self.say(f"{'counting' if asked[1] else 'measuring'} {asked[0].told}")

    def _weigh(self, one: Configuration, state: State, incumbent: Best | None) -> None:
        """Keep the candidate or record why not. ``incumbent``: the best that was measured alone."""
        if one == Configuration():
            return
        self._cold.setdefault(one, _cold(_figures(state, "patched")))
        now = self._span(state, "patched")
        if not _verified(state) and self._is_wide and not _differs(state):
            self._failed_together.append((one, _why(state)))
        elif not _verified(state):
            self._drop(one, _why(state))
        elif self._is_wide and now is not None and self._settles(state):
            self._contended.append((one, now))
            if incumbent is None:
                self._consider(one, state)
        elif not self._consider(one, state) and (one.settings or self.best is not None):
            self._drop(one, self._not_faster(state))

    def _not_faster(self, state: State) -> str:
        if not self._settles(state):
            return _UNSETTLED
        return f"{self._no_gain}: {_told(self._span(state, 'patched'), self.goal)}"

    @property
    def _no_gain(self) -> str:
        return "not fewer graphs" if self._counts_decide else "not faster"

    def _settles(self, state: State) -> bool:
        """Whether it stops compiling; where counts decide, whether it compiles no more often than the original."""
        if _settled(state, "patched"):
            return True
        assert self.base is not None
        was, now = standing(self.base, "original"), standing(state, "patched")
        return self._counts_decide and (was.failing > 0 or now.recompiles <= was.recompiles)

    def _time_finalists(self, incumbent: Best | None) -> None:
        """Measure the fastest of a concurrent round again alone. ``incumbent``: the best measured alone before."""
        found = sorted(self._contended, key=lambda pair: pair[1].median)
        self._contended = []
        before, cut = self.best, False
        finalists = [one for one, span in found if span.median <= _CLOSE * found[0][1].median][:_MOST_ALONE]
        for one, span in found:
            if one not in finalists:
                self._drop(one, f"not faster: {_told(span, self.goal)} (with others running)")
        self.best = incumbent
        for one in finalists or [one for one, _ in self._failed_together[:_MOST_ALONE]]:
            if self._is_over(_RESERVED + (0.2 if self.best is not None else 0.0)):
                self._drop(one, _NOT_TRIED)
                cut = True
                continue
            state = self._time(one)
            cut = cut or (self._span(state, "patched") is None and self._is_over(0.0))
            if not _verified(state):
                self._drop(one, _why(state))
            elif not self._consider(one, state):
                self._drop(one, self._not_faster(state))
        for one, why in self._failed_together if finalists else self._failed_together[_MOST_ALONE:]:
            self._drop(one, why)
        self._failed_together = []
        if self.best is None and cut:
            self.best = before

    def _those_that_verify(self, every: Configuration) -> None:
        """Find the fixes that give equal results, each by itself, with the backend ``eager``; measure them together."""
        untimed = replace(self.options, backend="eager", untimed=True)
        alone = {self._of([bundle], every): bundle for bundle in every.bundles}
        for one in alone:
            self._add(one, untimed, reserved=0.4)
        kept: list[Bundle] = []
        for (one, _), state in self._pool.results(lambda: self._is_over(0.5), self._told_of):
            if state is not None and _verified(state):
                kept.append(alone[one])
            elif state is not None:
                self._drop_for(alone[one], _why(state))
        if kept:
            self._round([self._of([bundle for bundle in every.bundles if bundle in kept], every)], _RESERVED)

    def _grow(self, forms: Sequence[Configuration]) -> None:
        """Fixes that only show where the fixes so far have changed what is compiled."""
        plain = [bundle for one in forms if not one.settings for bundle in one.bundles]
        self._tried |= {unit for bundle in plain for unit in bundle.units}
        for _ in range(_GROWTH if forms else 0):
            if self._is_over(_RESERVED + 0.1):
                break
            start = self.best.configuration if self.best else forms[0]
            state = self.best.state if self.best else self._count(start)
            self._learn(state, state.after)
            every = self._fixes(self.settings.unsafe, start.strategies, self.settings_of(start).torch_settings)
            new = [bundle for bundle in every.bundles if not bundle.units <= self._tried]
            if not new:
                break
            self._tried |= {unit for bundle in new for unit in bundle.units}
            before = self.best
            self._round([self._with_fixes(new, start)], _RESERVED)
            for bundle in new if self.best is before and new[1:] else ():
                self._round([self._with_fixes([bundle], start)], _RESERVED)

    def _try_arguments(self) -> None:
        """Arguments of ``torch.compile`` and settings, each on top of what is best."""
        tried: set[TorchSetting] = set()
        for _ in range(_ROUNDS):
            new = [setting for setting in self._offered() if setting not in tried]
            tried.update(new)
            if self._is_wide:
                made = [self._with(setting) for setting in new]
                self._round([one for one in made if one not in self._cold], _RESERVED + 0.25)
            for setting in new if not self._is_wide else ():
                self._round([self._with(setting)], _RESERVED + 0.1)

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
        calls = "call" in self.parts and not self._counts_decide
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
            if any(event.kind == "break" and event.stack[1:] for group in broken for event in group.events):
                asked.append(GOING_ON)
            yield from asked
        if calls and (figures is None or figures.counts.recompiles):
            yield TorchSetting("argument", "dynamic", True)
        slow = (self._cold.get(Configuration()) or 0.0) > _SLOW
        lists = {case.blocks for case in self.base.results.cases} if calls and (slow or self.goal == "startup") else ()
        if len(lists) == 1:
            yield from (TorchSetting("blocks", path, cls) for path, cls in next(iter(lists)))

    @property
    def _may_set(self) -> bool:
        """Whether settings of the whole process are tried: that all else is right with them is an assumption."""
        return self.settings.unsafe and self.settings.wants(*SETTING)

    @property
    def _names_layers(self) -> bool:
        """Whether a file names a recurrent layer; one that stands elsewhere and breaks is a cause by itself."""
        return any(word in file.before for file in self.analysis.first for word in (b"RNN", b"GRU", b"LSTM"))

    def _try_zones(self) -> None:
        """Functions that are left out of graphs as a whole, where that pays, for what nothing else has mended."""
        if not self.settings.unsafe or "fixes" not in self.parts or not self.settings.wants(ZONE, "scattered-breaks"):
            return
        start = self.best.configuration if self.best else Configuration()
        others = tuple(setting for setting in start.settings if setting != GOING_ON)  # it hides what is where
        state, tree = self._now() if others == start.settings else self._count_of(replace(start, settings=others))
        found = extents(state.after if tree == "patched" else state.before, self.bench.places)
        self.settings = replace(self.settings, extents=found[:CANDIDATES])
        order = [(extent.path, extent.function) for extent in distinct(found[:CANDIDATES])]
        made = bundles(self.analysis.again(self.settings_of(start)), self.bench.places) if order else ()
        before = self._count(start).totals("patched" if self.best else "original") if made else None
        zones = [bundle for bundle in made if bundle.key[0] == ZONE and bundle.key[1:] in order]
        for zone in sorted(zones, key=lambda bundle: order.index((bundle.key[1], bundle.key[2]))):
            one = self._of((*start.bundles, zone), start)
            after = None if self._is_over(_RESERVED + 0.1) else self._count(one).totals("patched")
            if before is None or after is None or not pays(before, after):
                self._drop_bundle(zone, "the graphs that it saves are worth less than what then runs eagerly")
            elif any(now > was for now, was in zip(self._standing(one), self._standing(start), strict=True)):
                self._drop_bundle(zone, f"something gets more: {self._standing(one).told}")
            else:
                self._round([one], _RESERVED + 0.1)

    def _causes(self) -> tuple[Group, ...]:
        state, tree = self._now()
        return groups(state.after if tree == "patched" else state.before, self.bench.places)

    def _try_fusions(self) -> None:
        """Operators written by hand: kept where eager code gets faster, and compiled code no slower."""
        start = self.best.configuration if self.best else Configuration()
        if self._counts_decide or "fixes" not in self.parts:
            return
        every = bundles(self.analysis.again(self.settings_of(start)), self.bench.places) if self._fusions else ()
        made = [bundle for bundle in every if bundle.key[0] in self._fusions]
        for some in (made, *([one] for one in made if made[1:])) if made else ():
            if self._is_over(0.05):
                break
            one = self._of((*start.bundles, *some), start)
            state, now = self._time(one), self._now()
            after = self._span(state, "patched")
            faster = _is_less(self._span(state, "patched", eager=True), self._span(*now, eager=True))
            if _verified(state) and after is not None and faster and not _is_less(self._span(*now), after):
                self._keep(one, state, after)
                start = one
            elif len(some) == 1:
                self._drop_bundle(some[0], "eager code is not faster" if _verified(state) else _why(state))
            if some is made and start is one:
                break

    def _prune(self) -> None:
        """Without the fixes that change no count: one that does not help is not kept."""
        if self.best is None or self.counted is None:
            return
        whole = self._without_settings(self.best.configuration)
        kept = self._needed(whole) if len(whole.bundles) > 1 else whole.bundles
        one = whole if len(kept) == len(whole.bundles) else self._of(kept, whole)
        if one == self.best.configuration or self._is_over(_RESERVED):
            return
        for _ in range(_TURNS):
            state = self._time(one)
            now = self._span(state, "patched")
            if _verified(state) and now is not None and not _is_less(self.best.span, now, _PRUNED):
                self._keep(one, state, now)
                return

    def _needed(self, whole: Configuration) -> Sequence[Bundle]:
        """Return the fixes that a cause explains, without those whose removal changes no count."""
        kept = self._with_reason(whole)
        usual = self._standing(whole)
        if len(kept) == len(whole.bundles) or self._standing(self._of(kept, whole)) > usual:
            kept = list(whole.bundles)
        for bundle in whole.bundles:
            if bundle not in kept:
                self._drop_bundle(bundle, "no run showed a cost there")
        return self._without_unneeded(kept, whole, usual)

    def _without_settings(self, whole: Configuration) -> Configuration:
        """Return the configuration without settings that were tried together, where no count changes without one."""
        usual = self._standing(whole)
        for setting in [one for one in whole.settings if one in self._together]:
            others = tuple(other for other in whole.settings if other != setting)
            rest = self._of(whole.bundles, replace(whole, settings=others))
            if not self._is_over(_RESERVED + 0.1) and self._standing(rest) <= usual:
                whole = rest
                self._note(setting.told, "no count changes without it")
        return whole

    def _without_unneeded(self, kept: list[Bundle], whole: Configuration, usual: Standing) -> list[Bundle]:
        """Return the fixes without those whose removal changes no count."""
        if self._is_wide and len(kept) > 1:
            rests = [self._of(_other_than(bundle, kept), whole) for bundle in kept[:_MOST_PRUNED]]
            self._count_all(rests, _RESERVED + 0.1)
        for bundle in kept[:_MOST_PRUNED]:
            if len(kept) < 2 or self._is_over(_RESERVED + (0.1 if self._is_wide else 0.25)):
                break
            rest = self._of(_other_than(bundle, kept), whole)
            if self._standing(rest) <= usual:
                kept = list(rest.bundles)
                self._drop_bundle(bundle, "no count changes without it")
        return kept

    def _with_reason(self, whole: Configuration) -> list[Bundle]:
        """The fixes that a cause in the original explains."""
        assert self.counted is not None
        places, costs = self.bench.places, {rule.code: rule.costs for rule in self.analysis.rules}
        found = findings(whole.files)
        causes = groups(self.counted.before, places)
        units = {one.unit for group in causes for one in related(group, found, costs, places)}
        return [bundle for bundle in whole.bundles if bundle.units & units]

    def _replay(self) -> None:
        """Drop fixes and settings with which changed inputs give other results; others that raise are told."""
        if self.best is None or self._is_over(_RESERVED):
            return
        whole = self.best.configuration
        self.replayed = self._replayed(whole)
        if self.replayed is None or not self.replayed.different:
            return
        plain = replace(whole, bundles=(), files=(), strategies=())
        alone = None if not plain.settings or self._is_over(_RESERVED) else self._replayed(plain)
        given = [each for each in plain.settings if each.kind == "argument"]
        if plain.settings and (alone is None or alone.different):
            for setting in (each for each in plain.settings if each not in given):
                self._note(setting.told, _Reason((alone or self.replayed).different[0], "different"))
            whole = replace(whole, settings=tuple(given))
        right = list[Bundle]()
        for bundle in whole.bundles:
            told = None if self._is_over(_RESERVED) else self._replayed(self._of([bundle], whole))
            if told is None or told.different:
                self._drop_for(bundle, _Reason((told or self.replayed).different[0], "different"))
            else:
                right.append(bundle)
        one, self.best, self.replayed = self._of(right, whole), None, None
        if not one.changed and not one.settings:
            return
        state = self._time(one)
        if _verified(state) and self._consider(one, state):
            self.replayed = self._replayed(one)

    def _replayed(self, one: Configuration) -> Replayed | None:
        """What changed inputs give, over all cases; None where that could not be had."""
        self.say(f"comparing {one.told} on changed inputs")
        seconds = min(_MOST_REPLAYED, _REPLAYED * self.budget)
        options = replace(self.options, quick=True, alone=True, replay=seconds)
        found = [case.replayed for case in self._measured(one, options).results.cases]
        known = [each for each in found if each is not None]
        if not known or len(known) < len(found):
            return None
        parts = zip(*((each.raising, each.failing, each.different) for each in known), strict=True)
        return Replayed(sum(each.inputs for each in known), *(tuple(chain(*part)) for part in parts))

    def _confirm(self) -> None:
        """The best once more, with the original beside it: a machine is not as fast at one time as at another."""
        assert self.base is not None
        if self._is_over(0.05) or (self.best is None and not self._is_wide and self._is_hopeless):
            return
        if self._counts_decide and self.options.quick:
            return  # it would be measured in the same way
        one = self.best.configuration if self.best else Configuration()
        state = self._measured(one, self.options, fresh=True)
        now = self._span(state, "patched" if one != Configuration() else "original")
        uncompared = any(case.compare_error for case in state.results.cases)
        if not _verified(state) and not _differs(state) and (now is None or uncompared):
            return  # the time was over: what was measured stands
        if one != Configuration() and (now is None or not _verified(state)):
            self._drop_fixes(one, _why(state))
            self.best = None
            return
        eager, was = (self._span(each, "original", eager=True) for each in (state, self.base))
        if self.best and eager is not None and was is not None and eager.median > _SLOWED * was.median:
            state = with_faster(state, self.best.state, "patched")
        state = with_faster(state, self.base, "original")
        self.base, self.best = state, None
        if one != Configuration() and not self._consider(one, state):
            self._drop(one, self._not_faster(state))

    @property
    def _is_hopeless(self) -> bool:
        """Whether the original compiled is wrong, or so much slower than eager that no other measurement turns it."""
        assert self.base is not None
        eager, compiled = (self._span(self.base, "original", eager) for eager in (True, False))
        wrong = not _equal(self.base, "original")
        return self._counts_decide or wrong or _is_less(eager, compiled, _HOPELESS)

    # --- measuring --------------------------------------------------------------------------------------------------

    def _time(self, one: Configuration) -> State:
        self.say(f"measuring {one.told}")
        state = self._measured(one, replace(self.options, quick=True))
        self._cold.setdefault(one, _cold(_figures(state, "patched")))
        return state

    def _count(self, one: Configuration) -> State:
        if one not in self._counts:
            self.say(f"counting {one.told}")
            how, since = self.options if self._counts_decide else counting(self.options), time.monotonic()
            how = self._looking(how) if one == Configuration() else how
            self._counts[one] = self._measured(one, replace(how, repeat=False, quick=True))
            self._counting = time.monotonic() - since
        return self._counts[one]

    def _measured(self, one: Configuration, options: plan.Options, fresh: bool = False) -> State:
        limited = replace(
            options, seconds=min(options.seconds, max(20.0, self._left(0.0))), until=self.began + self.budget
        )
        return self.bench.measure(one.changed, limited, fresh=fresh, settings=one.settings)

    def _consider(self, one: Configuration, state: State) -> bool:
        """Keep it when it is faster than what was best, and than the original compiled, beyond noise."""
        now = self._span(state, "patched")
        if now is None:
            return False
        assert self.base is not None
        was = self.best.span if self.best else self._span(self.base, "original")
        why = f"not better than the original compiled: {_told(now, self.goal)}"
        if not self._settles(state):
            why = _UNSETTLED
        elif self.goal == "startup" and _is_less(
            _span(self.base, "original", "latency", True), _span(state, "patched", "latency")
        ):
            why = "it starts quickly, but each call is slower than eager"
        elif _is_less(now, was) or (not _is_less(was, now) and self._compiles_faster(one)):
            self._keep(one, state, now)
            return True
        if self.best is None and one.bundles and not self._is_wide:
            self._drop_fixes(one, why)
        return False

    def _compiles_faster(self, one: Configuration) -> bool:
        """Whether the first pass takes less time than that of what was best: what counts where the times are equal."""
        if self._is_wide or self._counts_decide:
            return False  # first passes of a concurrent round are not comparable
        was = self._cold.get(self.best.configuration if self.best else Configuration())
        now = self._cold.get(one)
        return was is not None and now is not None and now < (1 - _COLD) * was

    def _keep(self, one: Configuration, state: State, now: Span) -> None:
        self.best = Best(one, state, now)
        if self.seconds_to_first is None:
            self.seconds_to_first = round(time.monotonic() - self.began, 1)
        self.keep(self.best)

    def _now(self) -> tuple[State, Tree]:
        assert self.base is not None
        return (self.best.state, "patched") if self.best else (self.base, "original")

    def _drop(self, one: Configuration, why: str | _Reason) -> None:
        """Record why a configuration is not kept, under what distinguishes it from the best one."""
        best = self.best.configuration if self.best else Configuration()
        own = [setting for setting in one.settings if setting not in best.settings]
        if one.bundles and not own and set(one.strategies) <= set(_FIRST_STRATEGIES) and self.best is None:
            self._drop_fixes(one, why)
            return
        more = [bundle for bundle in one.bundles if bundle not in best.bundles]
        if len(more) == 1 and not own:
            self._drop_bundle(more[0], why)
            return
        alone = own and one.bundles == best.bundles and (self.best or not self._is_wide)
        self._note(", ".join(setting.told for setting in own) if alone else one.told, why)

    def _drop_fixes(self, one: Configuration, why: str | _Reason) -> None:
        for bundle in one.bundles:
            self._drop_bundle(bundle, why)

    def _drop_bundle(self, bundle: Bundle, why: str | _Reason) -> None:
        self._note(bundle.label, why)

    def _drop_for(self, bundle: Bundle, why: _Reason) -> None:
        """Record why a fix is not kept by itself, in the place of what was said of it with others."""
        self.dropped = [other for other in self.dropped if other.what != bundle.label]
        self._drop_bundle(bundle, why)

    def _note(self, what: str, why: str | _Reason) -> None:
        reason = _Reason(why) if isinstance(why, str) else why
        if all(other.what != what for other in self.dropped):
            self.dropped.append(Dropped(what, *reason))

    def _span(self, state: State, tree: Tree, eager: bool = False) -> Span | None:
        return _span(state, tree, self.goal, eager)

    def _left(self, reserved: float) -> float:
        return self.budget * (1 - reserved) - (time.monotonic() - self.began)

    def _is_over(self, reserved: float) -> bool:
        """Whether only a reserved share of the budget is left."""
        return self._left(reserved) <= 0


def verdict(search: Optimizer, call: str = "", compiles: bool = True) -> Verdict:
    """What the search has come to. ``compiles``: whether the program compiles by itself."""
    base, best = search.base, search.best
    seconds = round(time.monotonic() - search.began, 1)
    if base is None:
        return Verdict("failed", search.goal, seconds=seconds, said=_failure(search.counted))
    place = base.results.environment
    counted, compiles = search.goal == GRAPHS, compiles or "call" not in search.parts
    unit = GRAPHS if counted else "latency"
    eager, before = (_span(base, "original", unit, eager) for eager in (True, False))
    after = _span(best.state, "patched", unit) if best else before
    told = Verdict(
        "failed",
        search.goal,
        place.device,
        place.torch,
        seconds,
        search.seconds_to_first,
        None if counted else _median(eager),
        None if counted else _median(before),
        dropped=tuple(one for one in search.dropped if one.what not in _named(best)),
    )
    if eager is None or (before is None and best is None):
        raises = eager is not None and _raises(base)
        return replace(told, word="do-not-compile" if raises else "failed", said=_failure(base))
    unfixed, fixed = _figures(base, "original"), _figures(best.state, "patched") if best else ()
    cold, again = search._cold.get(best.configuration if best else Configuration()), _cold(fixed or unfixed)
    told = replace(
        told,
        after_ms=None if counted else _median(after),
        cold_s=cold,
        before_cold_s=search._cold.get(Configuration()),
        warm_cold_s=None if again == cold else again,
        equivalent=_verified(best.state) and (compiles or _equal(best.state, "patched"))
        if best
        else _equal(base, "original"),
        max_difference=_difference(best.state if best else base, "patched" if best else "original"),
        replayed=search.replayed if best else None,
        by_call=_chosen(best.state if best else base, "patched" if best else "original"),
        breaks=Pair(*(counts([f.counts.breaks for f in side]) for side in (unfixed, fixed or unfixed))),
        recompiles=Pair(*(counts([f.counts.recompiles for f in side]) for side in (unfixed, fixed or unfixed))),
        graphs=Pair(*(counts([f.launches for f in side]) for side in (unfixed, fixed or unfixed))),
        ops_in_graphs=Pair(*(counts([f.operators for f in side]) for side in (unfixed, fixed or unfixed))),
    )
    judged = "latency" if search.goal == "startup" else search.goal  # eager code has nothing to compile
    least = _span(best.state, "patched", judged) if best else _span(base, "original", judged)
    alone = _span(base, "original", judged, eager=True)
    if not told.equivalent and best is None and any(case.compare_error for case in base.results.cases):
        return replace(told, said=_failure(base))
    if not told.equivalent:
        said = "compiled results differ from eager"
        if best is None and compiles:
            said += ", also without fixes"
        said = ": ".join([said, *islice(_apart(best.state if best else base, "patched" if best else "original"), 1)])
        return replace(told, word="failed" if compiles else "do-not-compile", said=said)
    runs_now = compiles and best is not None and before is None and not _is_less(alone, least)
    slower = not counted and not runs_now and not _is_less(least, alone)
    if slower and (search.against_eager or best is None):
        fixes = [Dropped(bundle.label, "eager is as fast") for bundle in (best.configuration.bundles if best else ())]
        why = named(fixed or unfixed)
        return replace(told, word="do-not-compile", dropped=(*told.dropped, *fixes), said=why)
    if best is None:
        return replace(told, word="already-best" if compiles else "optimized", call=call)
    one = best.configuration
    given = {setting.name: setting.value for setting in one.settings}
    return replace(
        told,
        word="optimized",
        call=call,
        settings=given,
        fixes=tuple(_kept(best)),
        files=tuple(search.bench.places.shown(file.path) for file in one.changed),
        said=f"{told.against_eager} on this device ({place.device})" if slower else "",
    )


def _chosen(state: State, tree: Tree) -> str:
    """What is told of results that rounding has chosen otherwise; "" where there are none."""
    found = (case.comparison(tree, "compiled", state.results.modes[0]) for case in state.results.cases)
    return "; ".join(chosen(one) for one in found if one is not None and one.chosen)


def _named(best: Best | None) -> frozenset[str]:
    """Return the names of what is kept, as ``dropped`` would name them."""
    one = best.configuration if best else Configuration()
    return frozenset((one.told, *(bundle.label for bundle in one.bundles), *(each.told for each in one.settings)))


def _kept(best: Best) -> Iterator[Kept]:
    """The fixes, each place of them once."""
    for file in best.configuration.changed:
        for fixed in file.patch.fixed if file.patch else ():
            safe = fixed.applicability == "safe"
            grade: Grade = "proven" if safe else "measured" if fixed.measured else "assumed"
            yield Kept(fixed.code, relative(file.path), fixed.line, grade, "" if safe else fixed.assumption)


def _figures(state: State, tree: Tree) -> tuple[Figures, ...]:
    return tuple(state.figures(tree).values())


def _span(state: State, tree: Tree, goal: str, eager: bool = False) -> Span | None:
    """What the goal measures, over all cases; None where one was not measured."""
    results = state.results
    if goal == GRAPHS:
        return _counted_span(state, tree, eager)
    mode = None if eager else results.modes[0]
    if results.backend not in TIMED and not eager:
        return None
    spans = []
    for case in results.cases:
        figures = case.variant(tree, "eager" if eager else "compiled", mode).figures
        spans.append(_of_figures(figures, goal) if figures is not None else None)
    known = [span for span in spans if span is not None]
    if not known or len(known) < len(spans):
        return None
    busy = [span.busy for span in known if span.busy is not None]
    low, median, high = map(sum, zip(*(span[:3] for span in known), strict=True))
    return Span(low, median, high, sum(busy) if len(busy) == len(known) else None)


def _counted_span(state: State, tree: Tree, eager: bool) -> Span | None:
    """What counts say, where no time is measured; of eager code only that it ran."""
    kind: Literal["eager", "compiled"] = "eager" if eager else "compiled"
    mode = None if eager else state.results.modes[0]
    if any(case.variant(tree, kind, mode).figures is None for case in state.results.cases):
        return None
    return Span(0, 0, 0) if eager else Span(0, 0, 0, None, standing(state, tree), operators(state, tree))


def _of_figures(figures: Figures, goal: str) -> Span | None:
    if goal == "startup":
        seconds = figures.cold_seconds
        return None if seconds is None else Span((1 - _ROUGH) * seconds, seconds, (1 + _ROUGH) * seconds)
    if goal == "memory":
        used = figures.memory.bytes / 2**20 if figures.memory else None
        return None if used is None else Span((1 - _ROUGH) * used, used, (1 + _ROUGH) * used)
    warm, calls = figures.warm, max(1, len(figures.settled))
    if warm is None:
        return None
    busy = None if warm.cpu_ms is None else warm.cpu_ms / calls
    return Span(warm.low_ms / calls, warm.median_ms / calls, warm.high_ms / calls, busy)


def _is_less(now: Span | None, was: Span | None, share: float = SHARE) -> bool:
    """Whether it is less beyond noise: quartiles apart, by more than a share, and CPU time says the same.

    What could not be measured is more than all that could. Fewer graphs since less is compiled are no gain.
    """
    if now is None or was is None:
        return now is not None
    if now.counts is not None and was.counts is not None:
        return now.counts < was.counts and not captures_less(now.operators, was.operators)
    by_clock = now.high < was.low and now.median < (1 - share) * was.median
    return by_clock and (now.busy is None or was.busy is None or now.busy < was.busy)


def _settled(state: State, tree: Tree) -> bool:
    return all(map(is_settled, _figures(state, tree)))


def is_settled(figures: Figures) -> bool:
    """Whether nothing was compiled any more in the last counted pass, and no limit was hit."""
    return not any(call.graphs or call.recompiles for call in figures.settled) and not figures.counts.limit_hits


def _equal(state: State, tree: Tree) -> bool:
    """Whether compiled code computes what the original computes eagerly: outputs, gradients, state."""
    return not any(_apart(state, tree))


def _apart(state: State, tree: Tree) -> Iterator[str]:
    """Yield how compiled results differ from those of the original in eager mode."""
    for case in state.results.cases:
        one = case.comparison(tree, "compiled", state.results.modes[0])
        yield from ("nothing was compared",) if one is None else apart(one, case.tolerance)


def _difference(state: State, tree: Tree) -> float | None:
    """The largest difference of compiled outputs to those of the original in eager mode."""
    found = [case.comparison(tree, "compiled", state.results.modes[0]) for case in state.results.cases]
    largest = [0.0 if c.outputs.bitwise else c.outputs.max for c in found if c is not None]
    known = [value for value in largest if value is not None]
    return max(known) if known else None


def _cold(figures: Sequence[Figures]) -> float | None:
    known = [one.cold_seconds for one in figures if one.cold_seconds is not None]
    return round(sum(known), 2) if known else None


def _other_than(bundle: Bundle, kept: Sequence[Bundle]) -> list[Bundle]:
    return [other for other in kept if other is not bundle]


def _verified(state: State) -> bool:
    """Whether compiled results equal those of the original in eager mode. Counts do not matter here, times decide."""
    statuses = {verdict.status for verdict in state.judgement.verdicts}
    return bool(statuses & {"equivalent", "worse"}) and statuses <= {"equivalent", "unproven", "worse"}


def _differs(state: State) -> bool:
    return any(verdict.status == "different" for verdict in state.judgement.verdicts)


def _why(state: State) -> _Reason:
    """Why a state does not count as verified."""
    for found in state.judgement.verdicts:
        if found.status not in ("equivalent", "unproven"):
            outcome: Fate = "different" if found.status == "different" else "failed"
            return _Reason("; ".join(found.reasons[:2]) or found.status, outcome)
    return _Reason("no recorded call runs what was changed", "failed")


def _failure(state: State | None) -> str:
    """What keeps a case from being measured."""
    for case in state.results.cases if state else ():
        for variant in case.variants:
            if variant.tree == "original" and variant.status == "timeout":
                return f"the budget was over before {variant.name} was measured; --budget gives more"
            if variant.tree == "original" and variant.status not in ("ok", "skipped"):
                return f"{variant.name}: {variant.message or variant.status}"
        if case.compare_error:
            return case.compare_error
    return "nothing could be measured"


def _raises(state: State) -> bool:
    """Whether the original fails when it is compiled, for no fault of the machine."""
    found = [case.variant("original", "compiled", state.results.modes[0]) for case in state.results.cases]
    failed = [variant for variant in found if variant.status in ("error", "compile-error")]
    return bool(failed) and not any(OF_MACHINE.search(variant.message) for variant in failed)


def _texts(one: Configuration) -> tuple[tuple[str, bytes], ...]:
    return tuple((file.path, file.after) for file in one.changed)


def _median(span: Span | None) -> float | None:
    return None if span is None else round(span.median, 3)


def _told(span: Span | None, goal: str) -> str:
    if span is not None and span.counts is not None:
        return span.counts.told
    return "did not run" if span is None else f"{span.median:.3g} {UNITS[goal]}"
