"""What every test shares."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from .browser.session import BrowserSession
from .durations import Durations
from .emptying import Emptying
from .servers import session
from .shares import Shares


def _remove_database() -> None:
    # A killed process leaves its write-ahead log behind, and the next database must not inherit it.
    database = Path(os.environ["STEADY_QUEUE_TEST_DB"])
    for path in database.parent.glob(f"{database.name}*"):
        path.unlink(missing_ok=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--share", default="1/1", help="which of the tests that runs share to run: 1,2/5"
    )
    parser.addoption("--thin", action="store_true", help="run what a merge needs")
    parser.addoption(
        "--touched", type=float, help="run the tests nearest to a change, for so many seconds"
    )
    parser.addoption(
        "--write-durations", action="store_true", help="write tests/durations.json anew"
    )
    parser.addoption(
        "--no-servers", action="store_true", help="leave out the tests that need database servers"
    )


def pytest_configure(config: pytest.Config) -> None:
    # A script's processes in the background ignore them, and so would all that the tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    # So does what nohup has started: it goes on after the signal, but its own processes heed it.
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN or hasattr(config, "workerinput"):
        signal.signal(signal.SIGHUP, lambda *_: None)
    config.pluginmanager.register(
        Shares(config.getoption("--share"), is_thin=config.getoption("--thin")), "shares"
    )
    config.pluginmanager.register(session.plugin(config), "database-servers")
    config.pluginmanager.register(BrowserSession(), "browser")
    config.pluginmanager.register(Emptying(), "emptying")
    if config.getoption("--thin"):
        # Read by tests of faults: how many jobs, and how long the faults.
        os.environ.setdefault("STEADY_QUEUE_FAULT_SCALE", "0.4")
    durations = Durations(config)
    config.pluginmanager.register(durations, "durations-here")
    if seconds := config.getoption("--touched"):
        from .touched import Touched

        config.pluginmanager.register(Touched(seconds, durations), "touched")
    if config.pluginmanager.has_plugin("xdist"):
        from .streams import Streams

        config.pluginmanager.register(Streams(), "streams")


def pytest_sessionstart() -> None:
    _remove_database()


def pytest_unconfigure() -> None:
    _remove_database()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage among what is collected: it stays, and is a seventh of the work."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """Keep the names of test databases: each process of pytest has its own (``tests.settings``)."""


@pytest.fixture(scope="session")
def workspace() -> Path:
    """The folder that holds the four distributions."""
    return Path(__file__).resolve().parent.parent
