"""The four distributions are released together, under one version."""

from __future__ import annotations

import importlib
import re
import tomllib
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import steady_queue_core

DIALECTS = ["steady_queue_mysql", "steady_queue_postgres", "steady_queue_sqlite"]
PACKAGES = ["steady_queue_core", *DIALECTS]
VERSION = steady_queue_core.__version__
COMPATIBLE = f"~={VERSION.rpartition('.')[0]}.0"


def project(workspace: Path, package: str) -> dict:
    return tomllib.loads((workspace / package / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_has_the_version_of_the_core(package: str) -> None:
    assert importlib.import_module(package).__version__ == VERSION


@pytest.mark.parametrize("package", PACKAGES)
def test_each_installed_distribution_has_the_version_of_its_package(package: str) -> None:
    assert metadata.version(package) == VERSION


@pytest.mark.parametrize("package", DIALECTS)
def test_each_dialect_asks_for_a_core_of_its_own_version(workspace: Path, package: str) -> None:
    assert f"steady-queue-core{COMPATIBLE}" in project(workspace, package)["dependencies"]


@pytest.mark.parametrize("package", DIALECTS)
def test_the_extras_of_the_core_pull_dialects_of_its_own_version(
    workspace: Path, package: str
) -> None:
    extras = project(workspace, "steady_queue_core")["optional-dependencies"]
    name = package.removeprefix("steady_queue_")
    assert extras[name] == [f"steady-queue-{name}{COMPATIBLE}"]


@pytest.mark.parametrize("package", PACKAGES)
def test_each_distribution_supports_the_same_pythons_and_djangos(
    workspace: Path, package: str
) -> None:
    core, other = project(workspace, "steady_queue_core"), project(workspace, package)
    assert other["requires-python"] == core["requires-python"]
    assert other["classifiers"] == core["classifiers"]


@pytest.mark.parametrize("package", PACKAGES)
def test_each_distribution_carries_the_licence_of_the_workspace(
    workspace: Path, package: str
) -> None:
    assert (workspace / package / "LICENSE").read_text() == (workspace / "LICENSE").read_text()


@pytest.mark.parametrize("package", PACKAGES)
def test_the_readme_of_a_distribution_stands_alone(workspace: Path, package: str) -> None:
    """An index of packages shows it without the files beside it."""
    text = (workspace / package / "README.md").read_text()
    assert re.findall(r"\]\((?!https://)[^)]*\)", text) == []
    assert "install ./" not in text


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_is_typed(workspace: Path, package: str) -> None:
    assert (workspace / package / package / "py.typed").exists()


def test_the_changelog_has_a_heading_for_the_version(workspace: Path) -> None:
    headings = [
        line
        for line in (workspace / "CHANGELOG.md").read_text().splitlines()
        if line.startswith("## ")
    ]
    assert any(VERSION in heading for heading in headings)


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-3.13.txt"])
def test_constraints_are_lines_of_name_and_version_only(workspace: Path, name: str) -> None:
    for line in (workspace / name).read_text().splitlines():
        package, separator, version = line.partition("==")
        assert separator == "=="
        assert package.replace("-", "").replace("_", "").replace(".", "").isalnum()
        assert version[0].isdigit()
        assert not set(version) & set(" ;@/:")


@pytest.mark.parametrize("package", PACKAGES)
def test_the_lowest_version_of_each_dependency_is_one_that_is_tested(
    workspace: Path, package: str
) -> None:
    lines = (workspace / "requirements-minimum.txt").read_text().splitlines()
    tested = [Requirement(line) for line in lines if line and not line.startswith("#")]
    versions = {each.name.lower(): str(each.specifier).removeprefix("==") for each in tested}
    stated = project(workspace, package)
    extras = stated.get("optional-dependencies", {}).values()
    for line in [*stated["dependencies"], *chain.from_iterable(extras)]:
        needed = Requirement(line)
        lowest = [each.version for each in needed.specifier if each.operator == ">="]
        if lowest:
            assert Version(versions[needed.name.lower()]) == Version(lowest[0]), line
