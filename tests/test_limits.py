"""How long lines may be, as the project's own tools are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.config import line_limit


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 100\n"}, 100),
        ({"pyproject.toml": "[tool.black]\nline-length = 79\n"}, 79),
        ({"pyproject.toml": "[tool.black]\nskip-string-normalization = true\n"}, 88),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 100\n[tool.black]\nline-length = 79\n"}, 100),
        ({"pyproject.toml": "[tool.flake8]\nmax-line-length = 90\n"}, 90),
        ({"ruff.toml": "line-length = 140\n", "pyproject.toml": "[tool.black]\nline-length = 79\n"}, 140),
        ({".ruff.toml": "line-length = 141\n", "ruff.toml": "line-length = 140\n"}, 141),
        ({"ruff.toml": "extend = 'config/base.toml'\n", "config/base.toml": "line-length = 99\n"}, 99),
        ({"ruff.toml": "extend = 'ruff.toml'\n"}, None),
        ({"setup.cfg": "[flake8]\nmax-line-length = 110\n"}, 110),
        ({"setup.cfg": "[flake8]\nmax_line_length = 110  # wide\n"}, 110),
        ({"setup.cfg": "[pycodestyle]\nmax-line-length = 101\n"}, 101),
        ({".flake8": "[flake8]\nmax-line-length=95\n", "setup.cfg": "[flake8]\nmax-line-length = 110\n"}, 95),
        ({"tox.ini": "[flake8]\nmax-line-length = 85\n"}, 85),
        ({"pyproject.toml": "[tool.black]\nline-length = 79\n", ".flake8": "[flake8]\nmax-line-length=95\n"}, 79),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 'long'\n"}, None),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 100000\n"}, None),
        ({"pyproject.toml": "[tool.ruff\n"}, None),
        ({"setup.cfg": "max-line-length = 110\n"}, None),
        ({"setup.cfg": b"\xff[flake8]\nmax-line-length = 110\n"}, None),
        ({"src/setup.cfg": "[flake8]\nmax-line-length = 90\n", "setup.cfg": "[flake8]\nmax-line-length = 110\n"}, 90),
        ({".git/HEAD": "", "../ruff.toml": "line-length = 91\n"}, None),
    ],
)
def test_what_the_project_says(tmp_path: Path, files: dict[str, str | bytes], limit: int | None) -> None:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    if limit is None:
        (root / ".git").mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert line_limit(str(root / "src" / "model.py")) == limit
