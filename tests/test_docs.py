"""Keeps README.md and docs/ true: what is there is documented, and what is documented is there."""

from __future__ import annotations

import ast
import inspect
import json
import logging.config
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import django
import pytest
from django.core.management.base import CommandParser

from steady_queue_core import testing
from steady_queue_core.backend_options import BackendOptions
from steady_queue_core.configuration import Configuration, load
from steady_queue_core.configuration.module_settings import DEFAULTS
from steady_queue_core.contrib.opentelemetry.options import TracingOptions
from steady_queue_core.contrib.sentry.options import SentryOptions
from steady_queue_core.dialects import hookspecs
from steady_queue_core.management.commands.steady_queue import Command
from steady_queue_core.payloads import PayloadOptions
from steady_queue_core.sharding.options import ShardingOptions
from steady_queue_core.tasks.options import USING, TaskOptions
from steady_queue_core.testing.fixture import TaskQueueFixture

from . import documents
from .documents import PAGES, WORKSPACE, page
from .findings import report

CONFIGURATION = page("configuration.md")
PACKAGES = [
    "steady_queue_core",
    "steady_queue_postgres",
    "steady_queue_mysql",
    "steady_queue_sqlite",
]

UNITS = {"ms": 0.001, "s": 1, "min": 60, "day": 86_400}


# --- links and code -------------------------------------------------------------------------------


def test_links_lead_to_pages_and_headings_that_exist() -> None:
    report(each for path in PAGES for each in wrong_links(path))


def wrong_links(path: Path) -> Iterator[str]:
    for place, found in documents.places(documents.LINK, path):
        link = found[1]
        if link.startswith("https:"):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists():
            yield f"{place}: a link to {name}, which is not there"
        elif anchor and anchor not in map(documents.anchor, documents.headings(target)):
            yield f"{place}: a link to {link}, but that page has no such heading"


def test_pictures_are_there_are_small_and_have_words() -> None:
    report(each for path in PAGES for each in wrong_pictures(path))


def wrong_pictures(path: Path) -> Iterator[str]:
    for place, found in documents.places(r'(?:src|srcset|href)="([^"]+)"', path):
        target = path.parent / found[1]
        if not target.exists():
            yield f"{place}: {found[1]} is not there"
        elif target.suffix == ".png" and target.stat().st_size >= 300_000:
            yield f"{place}: {found[1]} has more than 300,000 bytes"
    for place, found in documents.places("<img[^>]*>", path):
        if not re.search(r'alt="[^"]{20,}"', found[0]):
            yield f"{place}: say in an alt of 20 characters or more what the picture shows"


def test_the_readme_shows_the_dashboard_in_light_and_dark() -> None:
    text = page("README.md").read_text()
    for scheme in ("light", "dark"):
        assert f'"docs/images/overview-{scheme}.png"' in text


def test_python_blocks_are_python() -> None:
    report(each for path in PAGES for each in wrong_blocks(path))


def wrong_blocks(path: Path) -> Iterator[str]:
    for block in documents.blocks(path, "python"):
        try:
            ast.parse(block)
        except SyntaxError as error:
            yield f"{path.relative_to(WORKSPACE)}: {error.msg} in a block of Python: {error.text!r}"


def test_lines_are_short_and_nothing_is_left_to_be_done() -> None:
    report(each for path in PAGES for each in wrong_lines(path))


def wrong_lines(path: Path) -> Iterator[str]:
    for place, found in documents.places(r"(?m)^[^|\n].{110,}", path):
        yield f"{place}: break this line of {len(found[0])} characters, 110 are enough"
    for word in re.findall(r"\b(?:TODO|TBD|FIXME)\b", path.read_text()):
        yield f"{path.relative_to(WORKSPACE)}: a {word} is left"


# --- configuration --------------------------------------------------------------------------------


def documented_value(cell: str) -> Any:
    """Return what a cell in a column of defaults says; a string if it is not a value."""
    found = re.match(r"`(.+?)`", cell)
    if found is None:
        return cell
    number, _, unit = found[1].partition(" ")
    if unit in UNITS:
        return timedelta(seconds=float(number) * UNITS[unit])
    try:
        return ast.literal_eval(found[1])
    except (SyntaxError, ValueError):
        return found[1]


def parameters(function: Any) -> dict[str, Any]:
    return {each.name: each.default for each in inspect.signature(function).parameters.values()}


def assert_documents(path: Path, heading: str, expected: dict[str, Any]) -> None:
    """Compare a table of options with those that there are, and their defaults."""
    table = documents.rows(documents.section(path, heading))
    report(f"{path.name}, {heading}: {each}" for each in wrong_options(table, expected))


def wrong_options(table: dict[str, list[str]], expected: dict[str, Any]) -> Iterator[str]:
    for key in sorted(expected.keys() - table.keys()):
        yield f"`{key}` has no row"
    for key, cells in table.items():
        default = documented_value(cells[-2] if len(cells) > 1 else cells[0])
        if key not in expected:
            yield f"`{key}` has a row, but is no option"
        elif default != expected[key]:
            yield f"`{key}` has the default {expected[key]!r}, not {default!r}"


def test_every_option_of_a_backend_is_documented_with_its_default() -> None:
    expected = parameters(BackendOptions)
    del expected["alias"]
    assert_documents(CONFIGURATION, "OPTIONS", expected)


def test_every_option_of_a_task_is_documented() -> None:
    section = documents.section(page("tasks.md"), "Options")
    assert documents.rows(section).keys() == {"takes_context", *TaskOptions.__annotations__}
    [listed] = re.findall(r"`using\(\)` returns .*?: (.*?)\.\n", section, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", listed)) == USING


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("payloads.md", PayloadOptions),
        ("tracing.md", TracingOptions),
        ("sentry.md", SentryOptions),
    ],
)
def test_every_option_of_a_part_is_documented_with_its_default(name: str, options: Any) -> None:
    assert_documents(page(name), "Options", parameters(options))


def test_every_key_of_steady_queue_is_documented_with_its_default() -> None:
    expected = parameters(Configuration.Options)
    expected |= {key: DEFAULTS[key] for key in DEFAULTS.keys() & expected.keys()}
    expected |= dict.fromkeys(["workers", "dispatchers"], "one with the defaults")
    expected |= {"scheduler": "the defaults", "dialects": {}}
    assert_documents(CONFIGURATION, "STEADY_QUEUE", expected)


@pytest.mark.parametrize("name", ["Worker", "Dispatcher", "Scheduler"])
def test_every_key_of_a_process_is_documented_with_its_default(name: str) -> None:
    expected = parameters(getattr(Configuration, name))
    if "queues" in expected:
        [expected["queues"]] = expected["queues"]
    assert_documents(CONFIGURATION, name if name == "Scheduler" else f"{name}s", expected)


def test_every_module_level_setting_is_documented_with_its_default() -> None:
    assert_documents(CONFIGURATION, "Module-level settings", DEFAULTS)


def test_every_option_of_the_command_line_is_documented() -> None:
    parser = CommandParser(add_help=False)
    Command().add_arguments(parser)
    expected = {option for action in parser._actions for option in action.option_strings}
    table = documents.rows(documents.section(CONFIGURATION, "Command line"))
    assert {option.split()[0] for option in table} == expected


# --- checks and hooks -----------------------------------------------------------------------------


def test_every_system_check_is_documented() -> None:
    ids = {
        found
        for package in PACKAGES
        for path in (WORKSPACE / package / package).rglob("*.py")
        for found in re.findall(r"id=\"(steady_queue\.[A-Z]\d{3})\"", path.read_text())
    }
    documented = [each for each in documents.headings(page("checks.md")) if "." in each]
    assert len(ids) > 5
    assert sorted(ids) == documented


def test_every_hook_is_documented_with_its_signature() -> None:
    path = page("writing-a-dialect.md")
    hooks = {
        name: value for name, value in vars(hookspecs).items() if name.startswith("steady_queue_")
    }
    signatures = [
        f"{name}({', '.join(inspect.signature(hook).parameters)})" for name, hook in hooks.items()
    ]
    headings = [each for each in documents.headings(path) if each.startswith("steady_queue_")]
    assert headings == signatures
    for name, heading in zip(hooks, headings, strict=True):
        optional = documents.section(path, heading).lstrip().startswith("Optional.")
        assert optional == (name in hookspecs.OPTIONAL), name


# --- the map of the code --------------------------------------------------------------------------


def test_the_map_is_what_the_docstrings_say() -> None:
    made = runpy.run_path(str(WORKSPACE / "docs" / "make_map.py"))["text"]()
    assert page("map.md").read_text() == made, "'make map' writes it anew"
    report(line for line in made.splitlines() if line.endswith("|  |"))


def test_the_map_names_files_and_methods_that_exist() -> None:
    sources = {
        path.relative_to(WORKSPACE).as_posix(): path.read_text()
        for folder in (*PACKAGES, "tests", "examples")
        for path in (WORKSPACE / folder).rglob("*.py")
    }
    pages = (page("architecture.md"), *(WORKSPACE / "docs" / "decisions").glob("*.md"))
    report(each for path in pages for each in wrong_names(path, sources))


def wrong_names(path: Path, sources: dict[str, str]) -> Iterator[str]:
    for place, found in documents.places(r"`([\w/]+\.py)`", path):
        if not any(f"/{source}".endswith(f"/{found[1]}") for source in sources):
            yield f"{place}: there is no {found[1]}"
    for place, found in documents.places(r"`([A-Z]\w+)\.(\w+)\(\)`", path):
        owner, method = f"class {found[1]}", f"def {found[2]}("
        if not any(owner in source and method in source for source in sources.values()):
            yield f"{place}: there is no {found[1]}.{found[2]}()"


def test_the_index_of_decisions_names_each_of_them() -> None:
    folder = WORKSPACE / "docs" / "decisions"
    links = documents.LINK.findall((folder / "README.md").read_text())
    pages = {path.name for path in folder.glob("*.md")} - {"README.md"}
    assert {link for link in links if "/" not in link} == pages


# --- the examples, run ----------------------------------------------------------------------------


class Project:
    """A project made by ``startproject``, or copied, and used through its ``manage.py``."""

    def __init__(self, folder: Path, source: Project | None = None) -> None:
        self.folder = folder
        if source is None:
            self.run("-m", "django", "startproject", "mysite", ".")
            self.manage("startapp", "shop")
        else:
            shutil.copytree(source.folder, folder, dirs_exist_ok=True)

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        private = ("DJANGO_", "STEADY_QUEUE_")
        environ = {k: v for k, v in os.environ.items() if not k.startswith(private)}
        result = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if check:
            assert result.returncode == 0, f"{arguments}\n{result.stdout}\n{result.stderr}"
        return result

    def manage(self, *arguments: str) -> list[str]:
        """Run a command of the project; return the lines that it prints."""
        return self.run("manage.py", *arguments).stdout.splitlines()

    def shell(self, code: str) -> list[str]:
        return self.manage("shell", "--no-imports", "-c", code)

    def commands(self, *lines: str) -> list[str]:
        """Run several commands in one process; return the lines that they print."""
        calls = [f"call_command({', '.join(map(repr, line.split()))})" for line in lines]
        return self.shell("\n".join(["from django.core.management import call_command", *calls]))

    def write(self, block: str) -> None:
        """Put a block into the file that its first line names."""
        comment = block.partition("\n")[0]
        name = re.fullmatch(r"# ([\w/]+\.py)(, at the end)?", comment)
        assert name, comment
        path = self.folder / name[1]
        path.parent.mkdir(exist_ok=True)
        (path.parent / "__init__.py").touch()
        with path.open("a") as file:
            file.write(f"\n{block}")

    def configure(self, *apps: str) -> None:
        """Install ``apps``, and what the pages name for Django 5.2."""
        names = [*apps, *(["django_tasks"] if django.VERSION < (6, 0) else [])]
        with (self.folder / "mysite" / "settings.py").open("a") as settings:
            settings.write(f"\nINSTALLED_APPS += {names!r}\n")


@pytest.fixture(scope="module")
def new_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("new"))


@pytest.fixture
def project(new_project: Project, tmp_path: Path) -> Project:
    return Project(tmp_path, new_project)


@pytest.fixture(scope="module")
def shop(new_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A migrated project with the settings of the README."""
    shop = Project(tmp_path_factory.mktemp("shop"), new_project)
    settings, *_ = documents.blocks(page("README.md"), "python")
    shop.write(settings)
    shop.configure()
    shop.manage("migrate")
    return shop


@pytest.mark.slow
def test_the_example_of_the_readme_runs(shop: Project, tmp_path: Path) -> None:
    _, tasks, call = documents.blocks(page("README.md"), "python")
    project = Project(tmp_path, shop)
    project.write(tasks)
    assert project.manage("check") == ["System check identified no issues (0 silenced)."]

    ids = project.shell(f"{call}\nprint(result.id)")
    output = project.manage("steady_queue", "--drain")

    assert ids == ["1"]
    assert "Receipt for order 17 to ada@example.com" in "".join(output)
    assert project.shell(
        "from shop.tasks import send_receipt\n"
        "first, second = send_receipt.get_result('1'), send_receipt.get_result('2')\n"
        "print(first.status, first.return_value, second.status)"
    ) == ["SUCCESSFUL sent READY"]


@pytest.mark.slow
def test_the_example_in_the_readme_of_the_core_runs(project: Project) -> None:
    readme = WORKSPACE / "steady_queue_core" / "README.md"
    settings, tasks, call = documents.blocks(readme, "python")
    project.write(settings)
    project.configure()
    project.write(tasks)
    project.manage("migrate")
    project.shell(call)
    output = project.manage("steady_queue", "--drain")
    assert "Receipt for order 17 to ada@example.com" in "".join(output)


def test_the_readme_names_targets_of_the_makefile() -> None:
    makefile = (WORKSPACE / "Makefile").read_text()
    commands = documents.blocks(page("README.md"), "")
    named = re.findall(r"^make (\w+)$", "\n".join(commands), re.MULTILINE)
    assert named == ["demo", "serve", "test"]
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


@pytest.mark.slow
def test_the_quickstart_leads_to_a_task_that_has_run(project: Project) -> None:
    settings, tasks, call, results = documents.blocks(page("quickstart.md"), "python")
    project.write(settings)
    project.configure()
    project.write(tasks)
    project.commands("migrate", "check --database default")

    assert project.shell(call) == ["1 READY"]
    output = project.manage("steady_queue", "--drain")

    # The threads of a worker print at the same time: a line may hold two receipts.
    assert "Receipt for order 17" in "".join(output)
    assert "Receipt for order 18" in "".join(output)
    assert project.shell(results) == ["SUCCESSFUL 5 1"]
    assert "It prints `SUCCESSFUL 5 1`." in page("quickstart.md").read_text()


@pytest.mark.slow
@pytest.mark.thorough
def test_the_queue_moves_into_a_database_of_its_own_as_shown(project: Project) -> None:
    settings, tasks, calls = documents.blocks(page("separate-database.md"), "python")
    project.write(settings)
    project.write(tasks)
    project.configure("shop")
    check = "check --database default --database queue"
    project.commands("migrate", "migrate --database queue", check)

    tables = (
        "from django.db import connections\n"
        "for using in ('default', 'queue'):\n"
        "    names = connections[using].introspection.table_names()\n"
        "    print(using, *sorted({name.rpartition('_')[0][:12] for name in names}))"
    )
    own, queue = project.shell(tables)
    assert "auth" in own
    assert "steady_queue" not in own
    assert queue == "queue django steady_queue"
    (project.folder / "calls.py").write_text(calls)
    project.shell("import calls")
    project.manage("steady_queue", "--drain")
    values = (
        "from steady_queue_core.models import Job\n"
        "print(*Job.objects.order_by('pk').values_list('return_value', flat=True), sep='|')"
    )
    assert project.shell(values) == ['"order 17 was tried"|"sent 18"']


@pytest.mark.slow
@pytest.mark.thorough
def test_a_queue_is_spread_over_databases_as_shown(project: Project) -> None:
    code = documents.blocks(page("sharding.md"), "python")
    apart = documents.blocks(page("sharding.md"), "python", "In a project that has jobs")
    settings, function, *_ = (block for block in code if block.startswith("# mysite/"))
    calls = [each for each in code if each not in (settings, function, *apart)]
    project.write(settings)
    project.write(function)
    project.configure()
    migrate = [f"migrate --database {using}" for using in ("default", "east", "west")]
    *_, checked = project.commands(*migrate, "check --database east --database west")
    assert checked == "System check identified no issues (0 silenced)."
    deployed = project.run("manage.py", "check", "--deploy", check=False)
    assert "security.W018" in deployed.stderr
    assert "steady_queue" not in deployed.stdout + deployed.stderr
    (project.folder / "page.py").write_text("\n\n".join(calls))

    shown = project.shell(
        "import page\nfrom mysite.shards import key_of_call\n"
        "for _ in 'ab':\n"
        "    for shard in ('east', 'west'):\n"
        "        from django.core.management import call_command\n"
        "        call_command('steady_queue', '--drain', '--backend', shard)\n"
        "print(key_of_call(page.send, [17, 'x'], {}))\n"
        "page.result.refresh()\nprint(page.result.return_value)\n"
        "print({result.refresh() or result.status.value for result in page.results})\n"
        "page.batch.refresh()\nprint(page.batch.is_finished, page.batch.total)"
    )

    assert f"It prints `{shown[0]}`." in page("sharding.md").read_text()
    assert shown[-4:] == ["17", "welcome to customer 17", "{'SUCCESSFUL'}", "True 2"]


@pytest.mark.slow
def test_a_queue_that_has_jobs_is_spread_as_shown(shop: Project, tmp_path: Path) -> None:
    heading = "In a project that has jobs"
    settings, moved = documents.blocks(page("sharding.md"), "python", heading)
    commands = documents.blocks(page("sharding.md"), "", heading)
    _, tasks, call = documents.blocks(page("README.md"), "python")
    project = Project(tmp_path, shop)
    project.write(tasks)
    project.shell(call)

    project.write(settings)
    project.write(moved)
    for line in "\n".join(commands).splitlines():
        project.manage(*line.removeprefix("python manage.py ").split())
    checked = project.manage("check", "--database", "default", "--database", "west")
    assert checked == ["System check identified no issues (0 silenced)."]
    shown = project.shell(
        "from shop.tasks import send\n"
        "results = [send.enqueue(customer_id, 'news') for customer_id in range(8)]\n"
        "print(*sorted({result.id.partition(':')[0] for result in results}))"
    )
    project.manage("steady_queue", "--drain")
    finished = project.shell(
        "from shop.tasks import send_receipt\n"
        "from steady_queue_core.models import Job\n"
        "print(send_receipt.get_result('1').return_value)\n"
        "for using in ('default', 'west'):\n"
        "    print(Job.objects.using(using).filter(finished_at=None).count())"
    )
    assert shown == ["default west"]
    assert finished == ["sent", "1", "0"]  # One is due in an hour.


def test_every_option_of_a_sharded_backend_is_documented_with_its_default() -> None:
    expected = parameters(ShardingOptions)
    del expected["alias"]
    assert_documents(page("sharding.md"), "TASKS", expected)


#: Pages whose code needs no settings but those of the README.
PLAIN = [
    "signals.md",
    "concurrency.md",
    "rate-limits.md",
    "index.md",
    "delivery.md",
    "callbacks.md",
    "checkpoints.md",
    "durable-steps.md",
    "unique-jobs.md",
    "failover.md",
    "batches.md",
    "workflows.md",
]

#: Runs the code of each page in a process that has Django ready, and a database of its own.
RUN_EACH = """
import os, sys
from django.conf import settings
from steady_queue_core import call, task
failed = []
for folder in {folders}:
    if not (child := os.fork()):
        os.chdir(folder)
        sys.path.insert(0, folder)
        settings.DATABASES["default"]["NAME"] = f"{{folder}}/db.sqlite3"
        import page
        sys.exit()
    if os.waitpid(child, 0)[1]:
        failed.append(os.path.basename(folder))
if failed:
    sys.exit(f"FAILED: {{failed}}")
"""


@pytest.mark.slow
def test_the_code_of_pages_runs(shop: Project, tmp_path: Path) -> None:
    for name in PLAIN:
        copy = Project(tmp_path / name, shop)
        (copy.folder / "page.py").write_text("\n\n".join(documents.blocks(page(name), "python")))
    shop.shell(RUN_EACH.format(folders=[str(tmp_path / name) for name in PLAIN]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "tracing.md",
        "sentry.md",
        "tasks.md",
        "recurring.md",
        "payloads.md",
        "back-pressure.md",
        "fair-queues.md",
    ],
)
def test_the_code_of_a_page_runs(name: str, shop: Project, tmp_path: Path) -> None:
    project = Project(tmp_path, shop)
    code = documents.blocks(page(name), "python")
    settings = [block for block in code if block.startswith("# mysite/")]
    for block in settings:
        project.write(block)
    text = "\n\n".join(block for block in code if block not in settings)
    (project.folder / "page.py").write_text(text)

    project.shell("import page")

    if name == "recurring.md":
        assert project.shell(
            "from steady_queue_core.models import Job, RecurringTask\n"
            "[row], [job] = RecurringTask.objects.all(), Job.objects.all()\n"
            "print(row, row.timezone, row.enabled, job)"
        ) == ["report for ada: 30 7 * * 1-5 Europe/Berlin True page.report #1"]
    if name == "tracing.md":
        code = "from steady_queue_core import task\n\n\n@task\ndef work():\n    pass\n"
        project.write(f"# shop/tasks.py\n\n{code}")
        project.shell("from shop.tasks import work\nwork.enqueue()")
        spans = project.manage("steady_queue", "--drain")
        assert '    "name": "process default",' in spans
    if name == "tasks.md":
        assert project.shell(
            "import page\n"
            "from steady_queue_core.models import Job\n"
            "before = Job.objects.count()\n"
            "try:\n    page.order(1)\n"
            "except RuntimeError:\n    print(Job.objects.count() - before)"
        ) == ["0"]


#: What becomes of the examples for those who come from other queues.
FROM_OTHER_QUEUES = {
    "passed_on": [[7, 1, 2], 4],
    "on_their_own": [[7, 1, 2], 1],
    "several": [[1, 1, 2], [2, 1, 2]],
    "chord": [[1, 2], 3],
    "each": [1, 2],
    "chunks": [1, 5, 9],
    "linked": [[7, 1, 2]],
    "in_order": [[7, 1, 2], 1],
    "again": [[7, 1, 2], 1],
    "iterated": [1, 2],
    "shops": [[1, 1, 2], [2, 1, 2]],
    "told": [["ended", "shops", "succeeded"], ["imported", "import", "succeeded"],
             ["well", "", "succeeded"]],
    "batch": ["succeeded", {"shop": 7}, [[1, 1, 2], [2, 1, 2]]],
}  # fmt: skip


@pytest.mark.slow
def test_examples_for_those_who_come_from_other_queues_do_what_they_say(
    shop: Project, tmp_path: Path
) -> None:
    project = Project(tmp_path, shop)
    tasks, *code = documents.blocks(page("workflows.md"), "python")
    [start] = [number for number, block in enumerate(code) if "def tell(" in block]
    (project.folder / "page.py").write_text("\n\n".join([tasks, *code[start:]]))

    *_, found = project.shell(
        "import json, page\n"
        "from django.core.management import call_command\n"
        "from steady_queue_core.models import Job\n"
        "call_command('steady_queue', '--drain')\n"
        f"names = {[*FROM_OTHER_QUEUES][:-2]}\n"
        "found = {name: getattr(page, name).wait(5).values() for name in names}\n"
        "told = Job.objects.filter(task_path='page.tell').values_list('return_value', flat=True)\n"
        "found['told'] = sorted(map(json.loads, told))\n"
        "batch = page.batch.wait(5)\n"
        "values = [each.return_value for each in batch.results()]\n"
        "found['batch'] = [batch.status, batch.metadata, values]\n"
        "print(json.dumps(found))"
    )

    assert json.loads(found) == FROM_OTHER_QUEUES


@pytest.mark.slow
def test_examples_for_those_who_come_from_perfectqueue_do_what_they_say(
    shop: Project, tmp_path: Path
) -> None:
    project = Project(tmp_path, shop)
    settings, *code = documents.blocks(page("perfectqueue.md"), "python")
    project.write(settings)
    (project.folder / "page.py").write_text("\n\n".join(code))

    *_, found = project.shell(
        "import json, page\n"
        "from django.core.management import call_command\n"
        "call_command('steady_queue', '--drain')\n"
        "values = [each.wait(5).return_value for each in (page.k1, page.imported)]\n"
        "print(json.dumps([*values, page.imported.attempts]))"
    )

    # The release used up no attempt, the retry did.
    assert json.loads(found) == [{"uid": 1, "attempt": 1}, [5, 10], 2]


CHECKOUT = {
    "models.py": """
from django.db import models


class Order(models.Model):
    email = models.EmailField()
""",
    "tasks.py": """
from shop.models import Order
from steady_queue_core import task


@task(queue_name="mail")
def send_receipt(order_id):
    return f"sent to {Order.objects.get(pk=order_id).email}"
""",
    "views.py": """
from django.http import HttpResponse
from shop.models import Order
from shop.tasks import send_receipt


def checkout(request):
    order = Order.objects.create(email=request.POST["email"])
    send_receipt.enqueue(order.pk)
    return HttpResponse("thanks")
""",
    "urls.py": """
from django.urls import path
from shop.views import checkout

urlpatterns = [path("checkout/", checkout)]
""",
}


#: The page does not repeat it for each function; Django's test cases say it by themselves.
MARK_FUNCTIONS = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if item.cls is None:
            item.add_marker(pytest.mark.django_db)
"""


@pytest.mark.slow
@pytest.mark.thorough
def test_the_tests_shown_pass(shop: Project, tmp_path: Path) -> None:
    project = Project(tmp_path, shop)
    of_a_view, *others = documents.blocks(page("testing.md"), "python")
    [of_settings] = [block for block in others if block.startswith("# mysite/test_settings.py")]
    others.remove(of_settings)
    with (project.folder / "mysite" / "settings.py").open("a") as file:
        file.write("ROOT_URLCONF = 'shop.urls'\n")
    for name, text in CHECKOUT.items():
        (project.folder / "shop" / name).write_text(text)
    (project.folder / "shop" / "tests.py").unlink()
    project.write(of_a_view)
    project.write(of_settings)
    project.manage("makemigrations", "shop")
    test = of_a_view.partition("class ")[2].partition("\n")[2]
    assert len(test.splitlines()) <= 10

    told = project.run("manage.py", "test", "shop").stderr
    assert "Ran 1 test" in told
    assert "OK" in told

    (project.folder / "conftest.py").write_text(MARK_FUNCTIONS)
    code = "\n\n".join(others)
    (project.folder / "test_page.py").write_text(code)
    count = len(re.findall(r"^ *def test_", code, re.MULTILINE))
    pytest_ = ("-m", "pytest", "-q", "--strict-markers", "--ds", "mysite.settings", "test_page.py")
    assert f"{count} passed" in project.run(*pytest_).stdout

    with_settings = ("manage.py", "shell", "--settings", "mysite.test_settings", "-c")
    shown = project.run(
        *with_settings, "from test_page import double; print(double.enqueue(4).return_value)"
    )
    assert shown.stdout.splitlines()[-1] == "8"


def test_every_name_of_the_testing_kit_is_documented() -> None:
    text = page("testing.md").read_text()
    named = [name for name in testing.__all__ if name not in text]
    called = [name for name in vars(testing.TaskAssertions) if name.startswith("assert")]
    called = [name for name in called if f"`{name}(" not in text]
    own = [name for name in vars(TaskQueueFixture) if name != "arun" and name[0] != "_"]
    own = [name for name in own if f"`{name}" not in text]
    report(f"testing.md does not name {name}" for name in [*named, *called, *own])
    assert [name for name in testing.__all__ if not getattr(testing, name).__doc__] == []


def test_the_configurations_shown_are_valid() -> None:
    shown = []
    for block in documents.blocks(CONFIGURATION, "python"):
        if "STEADY_QUEUE =" in block:
            namespace: dict[str, Any] = {}
            exec(block, namespace)
            shown.append(load(namespace["STEADY_QUEUE"]))
    as_dict, as_options, _with_backends = shown
    assert as_dict.workers[0] == as_options.workers[0]
    assert as_dict.shutdown_timeout == as_options.shutdown_timeout


def test_the_logging_shown_is_valid() -> None:
    [block] = documents.blocks(page("logs.md"), "python")
    namespace: dict[str, Any] = {}
    exec(block, namespace)

    configurator = logging.config.DictConfigurator(namespace["LOGGING"])
    for name, given in configurator.config["formatters"].items():
        assert configurator.configure_formatter(given), name
    for given in configurator.config["filters"].values():
        assert isinstance(configurator.configure_filter(given), logging.Filter)


def log_calls() -> list[tuple[Path, ast.Call]]:
    """Return the calls of ``logger.info()`` and its like in the packages, except the one that makes
    the records of others."""
    paths = [path for package in PACKAGES for path in (WORKSPACE / package / package).rglob("*.py")]
    return [
        (path, node)
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and logs(node.func) and path.name != "internal_errors.py"
    ]


def logs(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id == "log_internal_error"
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id in ("logger", "task_logger")
        and function.attr in ("debug", "info", "warning", "error", "exception", "critical", "log")
    )


def test_every_log_record_says_what_happened_and_what_it_says_is_documented() -> None:
    events = reported_events()
    report(each for path, call in log_calls() for each in wrong_call(path, call, events))
    text = documents.section(page("logs.md"), "Records")
    documented = set(re.findall(r"`([a-z]+\.[a-z_]+)`", text.partition("| event |")[2]))
    assert events | {"task.finished", "task.failed"} == documented


def reported_events() -> set[str]:
    """Return the events that features report of a job, which the worker logs."""
    return {
        str(ast.literal_eval(node.args[0]))
        for path in (WORKSPACE / "steady_queue_core").rglob("features/*/*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Report"
    }


def wrong_call(path: Path, call: ast.Call, events: set[str]) -> Iterator[str]:
    """Add the events of a log record to ``events``; say what is wrong with the record."""
    place = f"{path.relative_to(WORKSPACE)}:{call.lineno}"
    extra = " ".join(ast.unparse(each.value) for each in call.keywords if each.arg == "extra")
    events |= set(re.findall(r"""['"]([a-z]+\.[a-z_]+)['"]""", extra))
    if not extra:
        yield f"{place}: a log record without an event"
    if "arguments" in ast.unparse(call):
        yield f"{place}: arguments are never logged"


def test_every_attribute_of_a_record_is_documented() -> None:
    given = {
        keyword.arg
        for path in (WORKSPACE / "steady_queue_core").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("about", "about_job")
        for keyword in node.keywords
        if keyword.arg is not None
    }
    text = documents.section(page("logs.md"), "Records").partition("| event |")[0]
    assert given | {"event", "process_name"} == documents.rows(text).keys()


@pytest.mark.django_db
def test_what_is_shown_of_jobs_and_queues_runs(capsys: pytest.CaptureFixture[str]) -> None:
    from steady_queue_core.models import Queue

    Queue("mail").pause()
    for block in documents.blocks(page("jobs.md"), "python"):
        exec(block, {"__name__": __name__})
    assert capsys.readouterr().out.split() == ["mail", "0", "0:00:00", "True"]
    assert not Queue("mail").paused


@pytest.mark.django_db
def test_the_permissions_are_documented_and_what_is_shown_of_the_admin_runs() -> None:
    from django.contrib import admin
    from django.contrib.auth.models import Group, Permission

    from steady_queue_core.admin import JobAdmin, QueuesAdmin
    from steady_queue_core.models import Job, Pause

    path = page("admin.md")
    offered = Permission.objects.filter(content_type__app_label="steady_queue")
    documented = documents.rows(documents.section(path, "Permissions"))
    assert documented.keys() == set(offered.values_list("codename", flat=True))
    namespace: dict[str, Any] = {"__name__": __name__}
    try:
        for block in documents.blocks(path, "python"):
            exec(block, namespace)
        assert namespace["operations"].is_registered(Job)
        assert namespace["LongerLists"].list_per_page == 100
        assert isinstance(admin.site.get_model_admin(Job), namespace["JobsOfMine"])
    finally:
        for model, own in ((Job, JobAdmin), (Pause, QueuesAdmin)):
            admin.site.unregister(model)
            admin.site.register(model, own)
    assert Group.objects.get(name="Support").permissions.count() == 4


@pytest.mark.parametrize("language", ["python", "toml"])
def test_the_dialect_shown_is_the_example(language: str) -> None:
    example = WORKSPACE / "examples" / "third_party_dialect"
    for block in documents.blocks(page("writing-a-dialect.md"), language):
        first, code = block.split("\n", 1)
        name = first.removeprefix("# ")
        [path] = [each for each in (example / name, example / "tests" / name) if each.exists()]
        for part in code.strip().split("\n\n"):
            assert part in path.read_text(), name
