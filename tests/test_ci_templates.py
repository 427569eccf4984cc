"""The GitHub action and the GitLab job: valid as their services see them, and their steps run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from junitparser import JUnitXml
from test_code_scanning import conforming, schema

ROOT = Path(__file__).resolve().parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
JOBS = yaml.safe_load((ROOT / "docs" / "gitlab-ci.yml").read_text(encoding="utf-8"))
WORKFLOW = yaml.safe_load((ROOT / "docs" / "github-actions.yml").read_text(encoding="utf-8"))
MODEL = """from torch import nn


class Net(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x = x * 2
        else:
            x = x - 1
        return x
"""


@pytest.mark.parametrize(
    ("name", "document"), [("GitHub Action", ACTION), ("GitHub Workflow", WORKFLOW), ("gitlab-ci", JOBS)]
)
def test_they_are_valid(name: str, document: Any) -> None:
    document = {("on" if key is True else key): value for key, value in document.items()}  # YAML 1.1 reads `on` as true
    official = schema(name)
    jsonschema.validators.validator_for(official)(official).validate(document)


def test_the_workflow_gives_the_action_what_it_takes() -> None:
    (job,) = WORKFLOW["jobs"].values()
    assert set(job["steps"][-1]["with"]) <= set(ACTION["inputs"])
    assert all("description" in given for given in ACTION["inputs"].values())


@pytest.fixture(scope="module")
def installing(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which ``pip install`` of this checkout asks no index, and its command is found."""
    target = tmp_path_factory.mktemp("installed")
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "CI_", "GITHUB_"))},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # which is how pip reads that there is none
        "PIP_TARGET": str(target),
        "PIP_UPGRADE": "1",
        "PYTHONPATH": str(target),
        "PATH": os.pathsep.join([str(target / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]),
    }


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A clean model, and a second commit that brings another one with a break."""
    folder = tmp_path / "a repository"
    folder.mkdir()

    def git(*arguments: str) -> None:
        named = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *named, *arguments], cwd=folder, check=True, capture_output=True)

    git("init", "-q")
    (folder / "old.py").write_text(MODEL)
    git("add", ".")
    git("commit", "-qm", "first")
    (folder / "new model.py").write_text(MODEL)
    git("add", ".")
    git("commit", "-qm", "second")
    return folder


def expanded(text: str, given: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda found: given[found[1]], text)


def action(
    repository: Path, environment: Mapping[str, str], *, skip: str = "", **inputs: str
) -> tuple[list[tuple[str, int]], str]:
    """Run the steps of the action as a runner does, but for one; the name and status of each, and what was printed."""
    given = {f"inputs.{name}": str(one["default"]) for name, one in ACTION["inputs"].items()}
    given |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
    ended, printed = [], ""
    for step in ACTION["runs"]["steps"]:
        if "uses" in step:
            assert expanded(step["with"]["sarif_file"], given) == given["inputs.sarif-file"]
            continue
        if step["name"] == skip:
            continue
        assert "${{" not in step["run"], "what users give is no part of a script"
        output = repository.parent / "output"
        output.write_text("")
        env = {name: expanded(value, given) for name, value in step.get("env", {}).items()}
        env |= {"GITHUB_ACTION_PATH": str(ROOT), "GITHUB_OUTPUT": str(output)}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]  # as `shell: bash` does
        done = subprocess.run(
            command, cwd=repository, env={**environment, **env}, capture_output=True, text=True, check=False
        )
        ended.append((step["name"], done.returncode))
        printed += done.stdout + done.stderr
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            given[f"steps.{step.get('id')}.outputs.{name}"] = value
    return ended, printed


def test_the_steps_of_the_action(repository: Path, installing: dict[str, str]) -> None:
    ended, printed = action(repository, installing)
    assert ended == [("Install", 0), ("Check", 0), ("Verdict", 1)], printed
    assert "::warning file=old.py,line=6," in printed
    found = conforming((repository / "fix-compile.sarif").read_text())["results"]
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in found]
    assert sorted(places) == ["new%20model.py", "old.py"]
    ended, printed = action(
        repository,
        installing,
        skip="Install",
        paths="new model.py\n\nold.py\n",
        diff_base="HEAD~1",
        annotate="false",
        args="--select FC1",
    )
    assert (ended[-1], "::warning" in printed) == (("Verdict", 1), False)
    assert len(conforming((repository / "fix-compile.sarif").read_text())["results"]) == 1
    quiet = {"skip": "Install", "annotate": "false"}
    assert action(repository, installing, **quiet, diff_base="HEAD")[0][-1] == ("Verdict", 0)
    assert action(repository, installing, **quiet, diff_base="$(touch hacked)")[0][-1] == ("Verdict", 2)
    assert not (repository / "hacked").exists()


def test_the_script_of_the_job(repository: Path, installing: dict[str, str]) -> None:
    job = JOBS[".fix-compile"]
    variables = {**job["variables"], "FIX_COMPILE": str(ROOT)}

    def run(script: list[str], **more: str) -> int:
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", "\n".join(script)],
            cwd=repository,
            env={**installing, **variables, **more},
            capture_output=True,
            check=False,
        ).returncode

    assert job["script"][0].startswith("python -m pip install")
    assert run(job["script"]) == 1
    report = JUnitXml.fromstring((repository / job["artifacts"]["reports"]["junit"]).read_bytes())
    assert (report.tests, report.failures) == (2, 2)
    (sarif,) = job["artifacts"]["paths"]
    assert len(json.loads((repository / sarif).read_text())["runs"][0]["results"]) == 2
    assert run(job["script"][1:], CI_MERGE_REQUEST_DIFF_BASE_SHA="HEAD") == 0
    report = JUnitXml.fromstring((repository / job["artifacts"]["reports"]["junit"]).read_bytes())
    assert (report.tests, report.failures) == (2, 0)
