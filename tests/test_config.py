"""[tool.fix-compile], and options checked against the rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy import RULES

from patcher.config import Config, ConfigError, ConfiguredCase, load
from patcher.options import find_rule, settings_from


def written(folder: Path, text: str) -> Config:
    (folder / "pyproject.toml").write_text(text)
    (folder / "src").mkdir(exist_ok=True)
    return load(str(folder / "src"))


def test_everything(tmp_path: Path) -> None:
    config = written(
        tmp_path,
        """
        [tool.fix-compile]
        select = ["FC1", "slow-call"]
        ignore = ["FC902"]
        unsafe = true
        strategy = { slow = "quick" }
        target-torch = "2.11"
        format = "json"
        jobs = 3
        exclude = ["old/*"]
        backup-dir = "../backups"
        [tool.fix-compile.cases]
        tiny = "cases/tiny.py"
        all = { path = "../cases" }
        [tool.fix-compile.cases.half]
        path = "cases/tiny.py"
        train = false
        tolerance = 1
        device = "cuda:1"
        dtype = "torch.bfloat16"
        """,
    )
    assert config == Config(
        root=tmp_path,
        select=("FC1", "slow-call"),
        ignore=("FC902",),
        unsafe=True,
        strategy=("slow=quick",),
        target_torch="2.11",
        format="json",
        jobs=3,
        exclude=("old/*",),
        backup_dir="../backups",
        cases={
            "tiny": ConfiguredCase("cases/tiny.py"),
            "all": ConfiguredCase("../cases"),
            "half": ConfiguredCase("cases/tiny.py", train=False, tolerance=1.0, device="cuda:1", dtype="bfloat16"),
        },
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("selekt = ['FC1']", "unknown key 'selekt' in [tool.fix-compile] (did you mean 'select'?)"),
        ("select = 'FC1'", "select in [tool.fix-compile] must be a list of codes, not 'FC1'"),
        ("select = [1]", "must be a list of codes"),
        ("unsafe = 1", "must be true or false"),
        ("jobs = true", "must be a whole number from 1"),
        ("jobs = 0", "must be a whole number from 1"),
        ("format = 'xml'", "must be one of text, json, github"),
        ("target-torch = 2.13", 'must be a string such as "2.13"'),
        ("strategy = 'x'", 'a list of "rule=name"'),
        ("select = [", "is not valid TOML"),
        ("cases = ['tiny.py']", "cases in [tool.fix-compile] must be a table, not ['tiny.py']"),
        ("cases.tiny = 3", "tiny in [tool.fix-compile.cases] must be a .py file or a folder, or a table with a path"),
        ("cases.tiny = ''", "path in [tool.fix-compile.cases.tiny] must be a .py file or a folder, not ''"),
        ("cases.tiny = {}", "[tool.fix-compile.cases.tiny] needs a path: a .py file or a folder"),
        ("cases.tiny = {path = 3}", "path in [tool.fix-compile.cases.tiny] must be a .py file or a folder, not 3"),
        ("cases.tiny.tolerence = 1", "'tolerence' in [tool.fix-compile.cases.tiny] (did you mean 'tolerance'?)"),
        ("cases.tiny.file = 1", "(known: path, train, tolerance, device, dtype)"),
        ("cases.tiny.train = 1", "train in [tool.fix-compile.cases.tiny] must be true or false, not 1"),
        ("cases.tiny.tolerance = true", "must be a positive number, not True"),
        ("cases.tiny.tolerance = 0", "must be a positive number, not 0"),
        ("cases.tiny.tolerance = inf", "must be a positive number, not inf"),
        ("cases.tiny.tolerance = '1e-3'", "must be a positive number, not '1e-3'"),
        ("cases.tiny.device = 0", "must be a device of torch such as"),
        ("cases.tiny.device = 'gpu'", "must be a device of torch such as"),
        ("cases.tiny.device = 'cuda:'", "must be a device of torch such as"),
        ("cases.tiny.dtype = 'int8'", "must be one of float16, bfloat16, float32, float64, half, float, double, not"),
    ],
)
def test_errors(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        written(tmp_path, f"[tool.fix-compile]\n{line}\n")
    assert str(error.value).startswith(str(tmp_path / "pyproject.toml"))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_nearest_file_counts(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.fix-compile]\njobs = 2\n")
    (tmp_path / "inner").mkdir()
    assert load(str(tmp_path / "inner")).jobs == 2
    (tmp_path / "inner/pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert load(str(tmp_path / "inner/missing.py")) == Config(root=tmp_path / "inner")


def test_command_line_wins() -> None:
    config = Config(select=("FC901",), strategy=("slow=auto",), target_torch="2.9")
    settings = settings_from(RULES, config, ["fc902, odd-name"], strategy=["FC901=quick"], target_torch="2.12.1+cu130")
    assert settings.select == ("fc902", "odd-name")
    assert settings.strategies == {"slow": "quick"}
    assert settings.target_torch == (2, 12)
    assert settings_from(RULES, config).target_torch == (2, 9)
    assert settings_from(RULES, Config()).target_torch == (2, 13)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"select": ["FC9", "FC801"]}, "--select: no rule is called 'FC801' (did you mean 'FC901'?)"),
        ({"ignore": ["slow-cal"]}, "did you mean 'slow-call'?"),
        ({"strategy": ["slow"]}, "write it as RULE=NAME"),
        ({"strategy": ["slaw=quick"]}, "did you mean 'slow'?"),
        ({"strategy": ["slow=quack"]}, "no strategy 'quack' (did you mean 'quick'?)"),
        ({"target_torch": "newest"}, "give a PyTorch version"),
        ({"target_torch": "1.13"}, "give a PyTorch version"),
    ],
)
def test_bad_options(options: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        settings_from(RULES, Config(), **options)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_find_rule() -> None:
    assert find_rule(RULES, "fc901").code == find_rule(RULES, "slow-call").code == "FC901"
    with pytest.raises(ConfigError, match="did you mean 'odd-name'"):
        find_rule(RULES, "odd-nam")
