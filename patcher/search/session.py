"""What one search knows, and how it measures, weighs, keeps and drops configurations."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from patcher.diagnose.asked_settings import is_unbounded
from patcher.diagnose.bench import Bench, State
from patcher.diagnose.better import TIMED, Standing, standing
from patcher.diagnose.counted import counting
from patcher.diagnose.diagnosis import Diagnostic
from patcher.diagnose.events import Seen
from patcher.diagnose.groups import groups
from patcher.diagnose.relations import Bundle, evidence, traced
from patcher.harness import plan
from patcher.harness.compare import TREES
from patcher.harness.measured import Replayed, Tree
from patcher.measuring.observed import observations
from patcher.patching.analysis import Analysis
from patcher.search.judged import (
    FIRST_STRATEGIES,
    NOT_TRIED,
    Best,
    Configuration,
    Reason,
    Span,
    cold_seconds,
    differs,
    figures_of,
    is_alike,
    is_less,
    is_verified,
    settles,
    span_of,
    told,
    told_settings,
    why_not,
)
from patcher.search.pool import Pool, Trial
from patcher.search.verdict import GRAPHS, Dropped
from patcher.settings import Settings, TorchSetting, Unit

_COLD = 0.15  # of the seconds of compiling, which are measured once too
RESERVED = 0.15  # of the budget: for measuring the end once more, beside the original
_CLOSE = 1.3  # times the fastest of a concurrent round: it may be as fast alone
_MOST_ALONE = 3  # configurations that are measured alone after each round
_PATIENCE = 1.5  # times the seconds until the first configuration was verified: for the others
_FEWEST_SECONDS = 20.0  # that each has
_UNSETTLED = "still recompiles in the last pass, or fell back to eager"


@dataclass
class Session:
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
    further: tuple[Diagnostic, ...] = ()  # what else was measured, for the report
    began: float = field(default_factory=time.monotonic)
    _replayed_with: Configuration | None = None
    _counts: dict[Configuration, State] = field(default_factory=dict)
    cold: dict[Configuration, float | None] = field(default_factory=dict)  # of what was compiled for the first time
    _contended: list[tuple[Configuration, Span]] = field(default_factory=list)  # measured concurrently
    _failed_together: list[tuple[Configuration, Reason]] = field(default_factory=list)  # in a concurrent round
    _counting: float = 0.0  # seconds that the last count took
    _together: set[TorchSetting] = field(default_factory=set)  # settings that were tried together
    _tried: set[Unit] = field(default_factory=set)  # fixes that were tried without settings, or grown
    _pool: Pool[tuple[Configuration, bool]] = field(init=False)

    def __post_init__(self) -> None:
        self._pool = Pool(self.bench)
        counted = self.options.backend not in TIMED
        self.goal = GRAPHS if counted else self.goal
        warm = not counted and self.goal != "startup"
        self.options = replace(self.options, warm_cache=warm, untimed=counted, eager_untimed=counted)

    @property
    def counts_decide(self) -> bool:
        """Whether the number of graphs does, and no time."""
        return self.goal == GRAPHS

    @property
    def _is_wide(self) -> bool:
        """Whether several things are measured at the same time."""
        return self._pool.at_once > 1

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

    def _standing(self, one: Configuration) -> Standing:
        return standing(*self._count_of(one))

    def _count_of(self, one: Configuration) -> tuple[State, Tree]:
        return self._count(one), "patched" if one.changed or one.settings else "original"

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
                self._drop(one, NOT_TRIED)
                continue
            ended.append((one, state))
            if self.base is None and (not self._is_wide or one == Configuration()):
                self._set_base(state)
            for each in ended if self.base is not None else ():
                self._weigh(*each, incumbent)
            ended = [] if self.base is not None else ended
            verified = self._contended or (not self._is_wide and is_verified(state))
            runs_graphs = any(one.launches for tree in TREES for one in figures_of(state, tree))
            whole = not any(setting.kind == "blocks" for setting in one.settings)
            if verified and self._pool.patience == math.inf and runs_graphs and whole:
                self._pool.patience = max(_FEWEST_SECONDS, _PATIENCE * self._pool.took)

    def _set_base(self, state: State) -> None:
        self.base = state
        self.cold.setdefault(Configuration(), cold_seconds(figures_of(state, "original")))

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
        self.cold.setdefault(one, cold_seconds(figures_of(state, "patched")))
        now = self._span(state, "patched")
        if not is_verified(state) and self._is_wide and not differs(state):
            self._failed_together.append((one, why_not(state)))
        elif not is_verified(state):
            self._drop(one, why_not(state))
        elif self._is_wide and now is not None and self._settles(state):
            self._contended.append((one, now))
            if incumbent is None:
                self._consider(one, state)
        elif not self._consider(one, state) and (one.settings or self.best is not None):
            self._drop(one, self._not_faster(state))

    def _not_faster(self, state: State) -> str:
        if not self._settles(state):
            return _UNSETTLED
        skips = dict.fromkeys(site.reason for one in figures_of(state, "patched") for site in one.cudagraph_skips)
        skipped = f"; CUDA graphs skipped: {', '.join(skips)}" if skips else ""
        return f"{self._no_gain}: {told(self._span(state, 'patched'), self.goal)}{skipped}"

    @property
    def _no_gain(self) -> str:
        return "not fewer graphs" if self.counts_decide else "not faster"

    def _settles(self, state: State) -> bool:
        """Whether it stops compiling; where counts decide, whether it compiles no more often than the original."""
        if settles(state, "patched"):
            return True
        assert self.base is not None
        was, now = standing(self.base, "original"), standing(state, "patched")
        if not self.counts_decide or was.failing == 0:
            return self.counts_decide and now.recompiles <= was.recompiles
        return not any(is_unbounded(group, self.bench.places) for group in groups(state.after, self.bench.places))

    def _time_finalists(self, incumbent: Best | None) -> None:
        """Measure the fastest of a concurrent round again alone. ``incumbent``: the best measured alone before."""
        found = sorted(self._contended, key=lambda pair: pair[1].median)
        self._contended = []
        before, cut = self.best, False
        finalists = [one for one, span in found if span.median <= _CLOSE * found[0][1].median][:_MOST_ALONE]
        for one, span in found:
            if one not in finalists:
                self._drop(one, f"not faster: {told(span, self.goal)} (with others running)")
        self.best = incumbent
        for one in finalists or [one for one, _ in self._failed_together[:_MOST_ALONE]]:
            if self._is_over(RESERVED + (0.2 if self.best is not None else 0.0)):
                self._drop(one, NOT_TRIED)
                cut = True
                continue
            state = self._time(one)
            cut = cut or (self._span(state, "patched") is None and self._is_over(0.0))
            if not is_verified(state):
                self._drop(one, why_not(state))
            elif not self._consider(one, state):
                self._drop(one, self._not_faster(state))
        for one, why in self._failed_together if finalists else self._failed_together[_MOST_ALONE:]:
            self._drop(one, why)
        self._failed_together = []
        if self.best is None and cut:
            self.best = before

    def _time(self, one: Configuration) -> State:
        self.say(f"measuring {one.told}")
        state = self._measured(one, replace(self.options, quick=True))
        self.cold.setdefault(one, cold_seconds(figures_of(state, "patched")))
        return state

    def _count(self, one: Configuration) -> State:
        if one not in self._counts:
            self.say(f"counting {one.told}")
            how, since = self.options if self.counts_decide else counting(self.options), time.monotonic()
            how = self._looking(how) if one == Configuration() else how
            self._counts[one] = self._measured(one, replace(how, repeat=False, quick=True))
            self._counting = time.monotonic() - since
        return self._counts[one]

    def _measured(self, one: Configuration, options: plan.Options, fresh: bool = False) -> State:
        until = (
            self.began + self.budget if fresh else min(self.began + self.budget, time.monotonic() + self._pool.patience)
        )
        limited = replace(options, seconds=min(options.seconds, max(20.0, self._left(0.0))), until=until)
        return self.bench.measure(one.changed, limited, fresh=fresh, settings=one.settings)

    def _consider(self, one: Configuration, state: State) -> bool:
        """Keep it when it is faster than what was best, and than the original compiled, beyond noise."""
        now = self._span(state, "patched")
        if now is None:
            return False
        assert self.base is not None
        was = self.best.span if self.best else self._span(self.base, "original")
        why = f"not better than the original compiled: {told(now, self.goal)}"
        if not self._settles(state):
            why = _UNSETTLED
        elif self.goal == "startup" and is_less(
            span_of(self.base, "original", "latency", True), span_of(state, "patched", "latency")
        ):
            why = "it starts quickly, but each call is slower than eager"
        elif is_less(now, was) or (is_alike(was, now) and self._compiles_faster(one)):
            self._keep(one, state, now)
            return True
        if self.best is None and one.bundles and not self._is_wide:
            self._drop_fixes(one, why)
        return False

    def _compiles_faster(self, one: Configuration) -> bool:
        """Whether the first pass takes less time than that of what was best: what counts where the times are equal."""
        if self._is_wide or self.counts_decide:
            return False  # first passes of a concurrent round are not comparable
        was = self.cold.get(self.best.configuration if self.best else Configuration())
        now = self.cold.get(one)
        return was is not None and now is not None and now < (1 - _COLD) * was

    def _keep(self, one: Configuration, state: State, now: Span) -> None:
        self.best = Best(one, state, now)
        if one != self._replayed_with:
            self.replayed = None  # it is of other code
        if self.seconds_to_first is None:
            self.seconds_to_first = round(time.monotonic() - self.began, 1)
        self.keep(self.best)

    def _now(self) -> tuple[State, Tree]:
        assert self.base is not None
        return (self.best.state, "patched") if self.best else (self.base, "original")

    def _drop(self, one: Configuration, why: str | Reason) -> None:
        """Record why a configuration is not kept, under what distinguishes it from the best one."""
        best = self.best.configuration if self.best else Configuration()
        own = [setting for setting in one.settings if setting not in best.settings]
        if one.bundles and not own and set(one.strategies) <= set(FIRST_STRATEGIES) and self.best is None:
            self._drop_fixes(one, why)
            return
        more = [bundle for bundle in one.bundles if bundle not in best.bundles]
        if len(more) == 1 and not own:
            self._drop_bundle(more[0], why)
            return
        alone = own and one.bundles == best.bundles and (self.best or not self._is_wide)
        self._note(", ".join(told_settings(own)) if alone else one.told, why)

    def _drop_fixes(self, one: Configuration, why: str | Reason) -> None:
        for bundle in one.bundles:
            self._drop_bundle(bundle, why)

    def _drop_bundle(self, bundle: Bundle, why: str | Reason) -> None:
        self._note(bundle.label, why)

    def _drop_for(self, bundle: Bundle, why: Reason) -> None:
        """Record why a fix is not kept by itself, in the place of what was said of it with others."""
        self.dropped = [other for other in self.dropped if other.what != bundle.label]
        self._drop_bundle(bundle, why)

    def _note(self, what: str, why: str | Reason) -> None:
        reason = Reason(why) if isinstance(why, str) else why
        if all(other.what != what for other in self.dropped):
            self.dropped.append(Dropped(what, *reason))

    def _span(self, state: State, tree: Tree, eager: bool = False) -> Span | None:
        return span_of(state, tree, self.goal, eager)

    def _left(self, reserved: float) -> float:
        return self.budget * (1 - reserved) - (time.monotonic() - self.began)

    def _is_over(self, reserved: float) -> bool:
        """Whether only a reserved share of the budget is left."""
        return self._left(reserved) <= 0
