"""Write the settings that a search has kept into the source, where the model is compiled."""

from __future__ import annotations

from dataclasses import replace

from patcher.diagnose.places import Places
from patcher.diagnose.relations import bundles
from patcher.patching.analysis import Analysis
from patcher.results import FileResult
from patcher.search.candidates import SETTING
from patcher.search.judged import Configuration
from patcher.settings import Settings, TorchSetting, Unit


def written(
    analysis: Analysis, settings: Settings, places: Places, one: Configuration
) -> tuple[tuple[FileResult, ...], tuple[TorchSetting, ...]]:
    """Return the files with the fixes and settings of a configuration, and the settings that no file has a place for.

    ``settings``: those of the rules for it (``Optimizer.settings_of``). A setting holds for the whole process, which is
    an assumption: without that grade, none is written.
    """
    if not one.settings or not settings.unsafe or not settings.wants(*SETTING):
        return one.changed, one.settings

    def units(some: tuple[TorchSetting, ...]) -> frozenset[Unit]:
        made = bundles(analysis.again(replace(settings, torch_settings=some, select=SETTING[:1])), places)
        return frozenset(unit for bundle in made for unit in bundle.units if unit.code == SETTING[0])

    left = tuple(setting for setting in one.settings if not units((setting,)))
    wanted = tuple(setting for setting in one.settings if setting not in left)
    if not wanted:
        return one.changed, left
    kept = frozenset(unit for bundle in one.bundles for unit in bundle.units)
    files = analysis.again(replace(settings, torch_settings=wanted, only=kept | units(wanted)))
    return tuple(file for file in files if file.changed), left
