"""``steady-queue demo --serve``: its link, its pages, its ends, and what it leaves."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from steady_queue_core.demo.serving.link import OneTimeLink

from .demos import Answer, Browser, Served, processes_in, projects, serve, start

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]

OVERVIEW = "admin/steady_queue/overview/"


def until(condition: Callable[[], bool], seconds: float = 20, also: object = None) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, also
        time.sleep(0.1)


def assert_nothing_is_left(served: Served, folder: Path) -> None:
    assert projects(folder) == []
    assert processes_in(folder) == {}
    assert not served.is_reachable()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    served = serve(folder)
    yield served
    served.process.send_signal(signal.SIGINT)
    served.process.communicate(timeout=30)


@pytest.fixture(scope="module")
def visits(served: Served) -> dict[str, Answer]:
    """What comes of the link, by who follows it, in this order."""
    stranger, rebound = served.browser(), "shop.example"
    return {
        "a wrong token": stranger.get(f"login/{served.token[:-1]}/"),
        "another host": stranger.get(served.link, host=rebound),
        "HEAD": stranger.get(served.link, method="HEAD"),
        "the first": _browsers.setdefault(served.port, served.browser()).get(served.link),
        "a second": stranger.get(served.link),
        "the first again": _browsers[served.port].get(served.link),
    }


#: The browsers that are logged in, by port.
_browsers: dict[int, Browser] = {}


@pytest.fixture
def browser(served: Served, visits: dict[str, Answer]) -> Browser:
    """The one that has used the link."""
    return _browsers[served.port]


# --- the link -------------------------------------------------------------------------------------


def test_the_link_leads_to_the_overview(served: Served, visits: dict[str, Answer]) -> None:
    assert visits["the first"].status == 200
    assert visits["the first"].url == f"http://127.0.0.1:{served.port}/{OVERVIEW}"
    assert "WELCOME" in visits["the first"].text.upper()


def test_the_link_works_once(served: Served, visits: dict[str, Answer]) -> None:
    second = visits["a second"]
    assert second.status == 403
    assert "was used already" in second.text
    assert "steady-queue demo --serve" in second.text
    assert visits["the first again"].status == 403
    assert f"/{OVERVIEW}" in visits["the first again"].text


def test_wrong_tokens_hosts_and_methods_log_nobody_in_and_do_not_use_up_the_link(
    visits: dict[str, Answer],
) -> None:
    assert visits["a wrong token"].status == 403
    assert visits["another host"].status == 400
    assert visits["HEAD"].status == 405
    assert visits["the first"].status == 200


def test_nothing_else_logs_in(served: Served, visits: dict[str, Answer]) -> None:
    stranger = served.browser()
    for page in ("", "admin/", OVERVIEW, "admin/login/", "admin/steady_queue/job/"):
        answer = stranger.get(page)
        assert answer.status == 403, page
        assert "<form" not in answer.text
        assert "end the demo with Ctrl-C" in answer.text
    assert stranger.get("admin/login/", method="POST").status == 403
    assert not any("session" in cookie.name for cookie in stranger.cookies)


def test_the_link_works_once_also_if_two_use_it_at_the_same_time() -> None:
    both_have_looked = threading.Barrier(2)

    class Observed(OneTimeLink):
        @property
        def _is_used(self) -> bool:
            value = self.value
            with suppress(threading.BrokenBarrierError):
                both_have_looked.wait(0.5)
            return value

        @_is_used.setter
        def _is_used(self, value: bool) -> None:
            self.value = value

    link = Observed()
    used: list[bool] = []
    threads = [threading.Thread(target=lambda: used.append(link.use(link.token))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(used) == [False, True]


def test_tokens_are_long_random_and_compared_as_a_whole() -> None:
    first, second = OneTimeLink(), OneTimeLink()
    assert first.token != second.token
    assert len(first.token) * 6 >= 256
    for wrong in ("", "ä", second.token, first.token + "=", first.token[:-1]):
        assert not first.use(wrong)
    assert first.use(first.token)


# --- who else can see it --------------------------------------------------------------------------


def test_only_this_computer_reaches_it_by_its_own_names(served: Served, browser: Browser) -> None:
    for host in ("shop.example", f"shop.example:{served.port}", "127.0.0.1.example", "[::1]"):
        assert browser.get(OVERVIEW, host=host).status == 400
    assert browser.get(OVERVIEW, host=f"localhost:{served.port}").status == 200
    assert served.is_reachable()
    if sys.platform.startswith("linux"):
        # Also an address of this computer, at which a server would answer that listens to all.
        assert not served.is_reachable("127.0.0.2")


def test_other_users_see_neither_its_secrets_nor_its_files(served: Served, folder: Path) -> None:
    [project] = projects(folder)
    assert stat.S_IMODE(project.stat().st_mode) == 0o700
    if not Path("/proc/self/environ").exists():
        pytest.skip("only Linux shows the environment of processes as files")
    for pid in (served.process.pid, *processes_in(folder)):
        for name in ("cmdline", "environ"):
            assert served.token not in Path(f"/proc/{pid}/{name}").read_text()


# --- the pages ------------------------------------------------------------------------------------


#: Patterns for what the sections of the overview have to tell.
SECTIONS = {
    "problems": r"Problems \(\d+\)",
    "charts": r"(?s)(<svg [^>]*sq-chart.*){3}",
    "a queue that is paused": "paused for",
    "blocked jobs": r"Blocked</dt><dd><a [^>]+>[1-9]",
    "running jobs": r"Running</dt><dd><a [^>]+>[1-9]",
    "scheduled jobs": r"Scheduled</dt><dd><a [^>]+>[1-9]",
    "processes": r"Processes</dt><dd><a [^>]+>4 live",
    "tasks": ">charge_card<",
    "what runs for longest": r"(?s)Running for longest</h2>.{0,500}<tbody><tr>",
    "schedules": ">expire carts<",
}


def test_the_overview_has_something_in_each_section(browser: Browser) -> None:
    missing = set(SECTIONS)

    def has_all() -> bool:
        text = browser.get(OVERVIEW).text
        missing.difference_update({each for each in missing if re.search(SECTIONS[each], text)})
        return not missing

    until(has_all, seconds=60, also=missing)


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("job/", "newsletter"),
        ("jobbatch/", "order 47"),
        ("pause/", "newsletter"),
        ("process/", "worker"),
        ("recurringtask/", "sales of the week"),
        ("rate/", "publish_offer"),
        ("semaphore/", "catalog"),
        ("overview/?window=24h", "Ended in each hour"),
        ("overview/?window=7d", "Ended in each hour"),
    ],
)
def test_each_page_shows_what_it_is_for(browser: Browser, page: str, shown: str) -> None:
    def is_shown() -> bool:
        answer = browser.get(f"admin/steady_queue/{page}")
        assert answer.status == 200
        return shown in answer.text

    until(is_shown)


def test_static_files_are_served_and_the_root_leads_to_the_overview(browser: Browser) -> None:
    assert "sq-overview" in browser.get("static/steady_queue/overview.css").text
    assert browser.get("static/admin/css/base.css").status == 200
    assert browser.get("static/admin/css/none.css").status == 404
    assert browser.get("").url.endswith(f"/{OVERVIEW}")


# --- the end --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "signum", [pytest.param(signal.SIGINT, marks=pytest.mark.thorough), signal.SIGTERM]
)
def test_a_signal_ends_it_and_nothing_is_left(signum: signal.Signals, tmp_path: Path) -> None:
    served = serve(tmp_path)

    served.process.send_signal(signum)
    served.process.send_signal(signum)  # Impatience does not end the clearing up half-way.
    output, errors = served.process.communicate(timeout=30)

    assert served.process.returncode == 0
    assert "The demo ends." in output
    assert errors == ""
    assert_nothing_is_left(served, tmp_path)


IN_A_FINALIZER = """
import os, signal
from steady_queue_core.demo.interruption import asking, interrupt_at_signals, raise_if_asked

class Signalled:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

interrupt_at_signals()
with asking():
    Signalled()
    try:
        raise_if_asked()
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.thorough
def test_a_signal_counts_also_where_python_ignores_exceptions() -> None:
    result = subprocess.run(
        [sys.executable, "-c", IN_A_FINALIZER], capture_output=True, text=True, check=False
    )
    assert (result.stdout, result.stderr) == ("interrupted\n", "")


@pytest.mark.thorough
def test_a_closed_terminal_ends_it_and_nothing_is_left(tmp_path: Path) -> None:
    ours, theirs = os.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    process = start(
        tmp_path, "--serve", stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True, preexec_fn=take_terminal,
    )  # fmt: skip
    os.close(theirs)
    with open(ours) as terminal:
        served = Served(process, terminal)

    assert process.wait(30) == 0
    assert_nothing_is_left(served, tmp_path)


def test_killed_it_takes_its_processes_along(tmp_path: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells a process that its parent has died")
    served = serve(tmp_path)
    assert processes_in(tmp_path)

    served.process.kill()
    served.process.communicate(timeout=30)

    until(lambda: not processes_in(tmp_path))
    assert not served.is_reachable()


@pytest.mark.thorough
def test_a_part_that_ends_by_itself_is_named_and_ends_it(tmp_path: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("the supervisor is found by its folder")
    served = serve(tmp_path)

    os.kill(min(processes_in(tmp_path)), signal.SIGKILL)
    _, errors = served.process.communicate(timeout=30)

    assert served.process.returncode == 1
    assert "a part of the demo has ended by itself: the supervisor, with exit status -9" in errors
    assert "Traceback" not in errors
    assert_nothing_is_left(served, tmp_path)


def test_a_port_that_is_taken_is_named_with_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        demo = start(tmp_path, "--serve", "--port", str(port))
        output, errors = demo.communicate(timeout=30)

    assert demo.returncode == 1
    assert errors == (
        f"steady-queue demo: port {port} of 127.0.0.1 is taken: another program listens there. "
        "Choose another one with --port, or leave --port out for a free one.\n"
    )
    assert output == ""
    assert projects(tmp_path) == []


# --- the load -------------------------------------------------------------------------------------

WITHOUT_WORKERS = """
from django.db.models import Count
from steady_queue_core.demo.serving.load import Load
from steady_queue_core.models import BlockedExecution, ReadyExecution
load = Load(0)
for second in range(0, 900, 3):
    load.step(second)
of_queues = ReadyExecution.objects.values_list("queue_name").annotate(number=Count("pk"))
numbers = dict(of_queues.order_by())
print(numbers["mail"], sum(numbers.values()), BlockedExecution.objects.count())
"""


@pytest.mark.thorough
def test_it_ends_by_itself_after_some_time_and_keeps_its_project(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    served = serve(tmp_path, "--seconds", "0.5", "--port", str(port), "--keep")

    output, errors = served.process.communicate(timeout=30)

    assert (served.process.returncode, errors) == (0, "")
    assert served.port == port
    [kept] = projects(tmp_path)
    assert f"The project is kept in {kept}" in output
    assert served.token not in "".join(
        path.read_text(errors="replace") for path in kept.rglob("*") if path.is_file()
    )
    assert_the_load_is_bounded(kept)


def assert_the_load_is_bounded(project: Path) -> None:
    """A quarter of an hour in which nothing runs, as if all queues were paused."""
    private = ("DJANGO_", "STEADY_QUEUE_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    result = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", WITHOUT_WORKERS],
        cwd=project,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    mail, ready, blocked = map(int, result.stdout.split())
    assert 100 < mail <= 200
    assert 500 < ready < 1_050
    assert 0 < blocked < 10
