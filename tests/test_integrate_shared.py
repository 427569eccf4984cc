"""Several scripts of one folder use one new module: it stays until the last of their runs is restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_integrate import TRAIN, contents, fix_compile, project, python

__all__ = ["project"]

SECOND = TRAIN.replace("--steps", "--rounds").replace("args.steps", "args.rounds")


@pytest.fixture
def both(project: Path) -> dict[str, bytes]:
    (project / "tune.py").write_text(SECOND)
    return contents(project)


def integrate_both(folder: Path) -> None:
    for script in ("train.py", "tune.py"):
        status, out, _ = fix_compile(folder, "integrate", script)
        assert status == 0, out


def compiles(folder: Path, script: str) -> bool:
    out = str(folder.with_name(f"{folder.name}.pt"))
    told = python(folder, script, "--compile", "--compile_backend", "eager", "--out", out)
    return told.endswith("graphs 2\n")


@pytest.mark.parametrize("order", [("1", "2"), ("2", "1")])
def test_the_module_stays_for_the_script_that_is_left(
    order: tuple[str, str], project: Path, both: dict[str, bytes]
) -> None:
    integrate_both(project)
    patched = contents(project)
    left = {"1": "train.py", "2": "tune.py"}[order[1]]
    taken = {"1": "train.py", "2": "tune.py"}[order[0]]
    status, out, _ = fix_compile(project, "restore", order[0])
    assert status == 0
    assert f"compile_utils.py: left, run 000{order[1]} uses it too\n" in out
    assert contents(project) == {**both, left: patched[left], "compile_utils.py": patched["compile_utils.py"]}
    assert contents(project)[taken] == both[taken]
    assert compiles(project, left)
    status, out, _ = fix_compile(project, "restore", order[1])
    assert (status, "compile_utils.py: restored" in out) == (0, True)
    assert contents(project) == both


def test_restoring_one_after_the_other(project: Path, both: dict[str, bytes]) -> None:
    integrate_both(project)
    assert fix_compile(project, "restore")[0] == 0
    assert compiles(project, "train.py")
    assert fix_compile(project, "restore")[0] == 0
    assert contents(project) == both


def test_what_is_shown_of_the_second(project: Path, both: dict[str, bytes]) -> None:
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    before = contents(project)
    status, out, _ = fix_compile(project, "integrate", "--dry-run", "tune.py")
    assert status == 0
    assert "tune.py" in out
    assert "b/compile_utils.py" not in out
    assert contents(project) == before


def test_a_module_that_no_run_has_made_is_never_taken_away(project: Path, both: dict[str, bytes]) -> None:
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    assert fix_compile(project, "forget")[0] == 0
    patched = contents(project)
    assert fix_compile(project, "integrate", "tune.py")[0] == 0
    assert fix_compile(project, "restore")[0] == 0
    assert contents(project) == patched


def test_forgotten_runs_keep_what_they_use(project: Path, both: dict[str, bytes]) -> None:
    integrate_both(project)
    patched = contents(project)
    assert fix_compile(project, "forget", "1")[0] == 0
    assert fix_compile(project, "restore", "2")[0] == 0
    assert contents(project) == {**patched, "tune.py": both["tune.py"]}
    assert compiles(project, "train.py")


def test_a_module_that_was_edited_while_two_use_it(project: Path, both: dict[str, bytes]) -> None:
    integrate_both(project)
    with (project / "compile_utils.py").open("a") as file:
        file.write("# mine\n")
    assert fix_compile(project, "restore", "1", "--force")[0] == 0
    assert (project / "compile_utils.py").read_text().endswith("# mine\n")
    assert compiles(project, "tune.py")
    status, _, err = fix_compile(project, "restore", "2")
    assert status == 2
    assert "compile_utils.py: error: is new and was edited since; --force removes it" in err
    assert "patched it again" not in err
    assert contents(project)["tune.py"] == both["tune.py"]
    assert fix_compile(project, "restore", "2", "--force")[0] == 0
    assert contents(project) == both


def test_a_module_that_was_deleted_while_two_use_it(project: Path, both: dict[str, bytes]) -> None:
    integrate_both(project)
    (project / "compile_utils.py").unlink()
    for run in ("1", "2"):
        status, out, _ = fix_compile(project, "restore", run)
        assert status == 0
        assert "left, run" not in out
    assert contents(project) == both


def test_a_script_in_another_style_shares_it(project: Path, both: dict[str, bytes]) -> None:
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    (project / "tune.py").write_text(SECOND.replace('"', "'"))
    status, out, _ = fix_compile(project, "integrate", "tune.py")
    assert status == 0, out
    assert compiles(project, "tune.py")
    assert fix_compile(project, "restore", "1")[0] == 0
    assert compiles(project, "tune.py")


def test_one_that_needs_another_module_is_told(project: Path, both: dict[str, bytes]) -> None:
    assert fix_compile(project, "integrate", "train.py")[0] == 0
    other = SECOND.replace(
        '    parser.add_argument("--rounds"',
        '    parser.add_argument("--torch_compile_all")\n    parser.add_argument("--rounds"',
    ).replace(
        '    model.to("cpu")',
        '    model.to("cpu")\n    if args.torch_compile_all:\n        model = torch.compile(model)',
    )
    (project / "tune.py").write_text(other)
    before = contents(project)
    status, out, _ = fix_compile(project, "integrate", "tune.py")
    assert status == 1
    assert out == (
        "compile_utils.py: is there already, made for another script or edited since: choose a name for the new "
        "module with --module\n"
    )
    assert contents(project) == before
    assert fix_compile(project, "integrate", "--module", "tune_compiling", "tune.py")[0] == 0
    assert fix_compile(project, "restore", "1")[0] == 0
    assert compiles(project, "tune.py")
