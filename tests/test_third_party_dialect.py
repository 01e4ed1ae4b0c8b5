"""The example of a dialect by somebody else, in an empty environment, as its page describes it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .newcomer import Environment, NewProject, Wheels
from .servers import client
from .servers.address import Address
from .servers.kinds import KINDS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.server("postgres"),
]


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    server = KINDS["postgres"].given()
    assert server is not None
    with client.fresh_database(server) as address:
        yield address


@pytest.fixture(scope="module")
def example(workspace: Path) -> Path:
    return workspace / "examples" / "third_party_dialect"


@pytest.fixture(scope="module")
def project(
    tmp_path_factory: pytest.TempPathFactory, workspace: Path, example: Path, address: Address
) -> NewProject:
    folder = tmp_path_factory.mktemp("third_party")
    environment = Environment(folder / "environment", Wheels(folder / "wheels"))
    environment.install(workspace / "steady_queue_core", example, "psycopg[binary]")
    project = NewProject(folder / "project", environment)
    project.start()
    project.configure(f"\nDATABASES = {{'default': {address.settings()!r}}}\n")
    return project


@pytest.mark.thorough
def test_a_job_runs_through_it_and_a_second_dialect_is_a_conflict(
    project: NewProject, workspace: Path
) -> None:
    project.manage("check", "--database", "default")
    project.manage("migrate")
    [identifier] = project.shell("""
        from jobs.tasks import our_add
        print(our_add.enqueue(20, b=30).id)
    """)
    drained = project.manage("steady_queue", "--drain")
    assert "PostgreSQL, untuned" in drained.stdout + drained.stderr
    assert project.shell(f"""
        from jobs.tasks import our_add
        result = our_add.get_result({identifier!r})
        print(result.status.name, result.return_value)
    """) == ["SUCCESSFUL 50"]

    project.environment.install(workspace / "steady_queue_postgres")
    refused = project.manage("check", "--database", "default", "--deploy", check=False)
    assert refused.returncode == 1
    assert "steady_queue.E002" in refused.stderr
    remedy = "STEADY_QUEUE = {'dialects': {'default': 'plain_postgres'}}"
    assert remedy in refused.stderr

    project.configure(f"\n{remedy}\n")
    project.manage("check", "--database", "default")


@pytest.mark.thorough
def test_it_keeps_the_contract(project: NewProject, example: Path, address: Address) -> None:
    environ = {
        **{name: text for name, text in os.environ.items() if not name.startswith("DJANGO_")},
        "PGHOST": address.host,
        "PGPORT": str(address.port),
        "PGUSER": address.user,
        "PGPASSWORD": address.password,
        "PGDATABASE": address.name,
    }
    result = subprocess.run(
        [project.environment.python, "-m", "django", "test", "--settings=tests.settings"],
        cwd=example, env=environ, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert "OK" in result.stderr
    assert "Ran 0 tests" not in result.stderr
