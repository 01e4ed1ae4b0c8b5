"""Workers of pytest-xdist share one fleet: the controlling process has it, and they ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier, Event
from types import SimpleNamespace
from typing import Any

import pytest

from . import fleet, session
from .address import Address
from .desk import Desk, Place
from .fleet import REQUIRE, Unusable
from .kinds import Kind
from .private import DidNotStart
from .session import DESK, ServerSession, WorkerServers

ALIASES = ["one", "two"]
TESTS = dict.fromkeys(ALIASES, 3)
WORKERS = 4


class Recipe:
    account, origin = None, "played"

    def __init__(self, alias: str) -> None:
        self.alias = alias


class PlayedServer:
    """What a fleet takes for a server; ``begun`` is called when it starts."""

    begun: Callable[[str], object]
    started: list[str]
    closed: list[str]

    def __init__(self, recipe: Recipe) -> None:
        self.alias = recipe.alias
        self.started.append(self.alias)
        self.begun(self.alias)
        self.address = Address("mysql", "root", "", "127.0.0.1", 1, self.alias)
        self.version, self.took = f"MySQL {self.alias}", 1.0

    def release(self) -> None:
        """It ends when it is closed."""

    def close(self) -> None:
        self.closed.append(self.alias)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> type[PlayedServer]:
    """Have fleets start these in the place of servers."""
    kinds = {
        alias: Kind(alias, alias.title(), "mysql", lambda alias=alias: Recipe(alias))
        for alias in ALIASES
    }
    for kind in kinds.values():
        monkeypatch.setenv(kind.variable, "")
    for module in (fleet, session):
        monkeypatch.setattr(module, "KINDS", kinds)
    server = type("Server", (PlayedServer,), {"started": [], "closed": [], "begun": lambda *_: 0})
    monkeypatch.setattr(fleet, "PrivateServer", server)
    monkeypatch.delenv(REQUIRE, raising=False)
    return server


@pytest.fixture
def controller(played: type[PlayedServer]) -> Iterator[ServerSession]:
    session = ServerSession()
    yield session
    session.pytest_unconfigure()


def asked(controller: ServerSession) -> list[Future[Any]]:
    """Return the answers that several workers get which ask at once."""
    node: Any = SimpleNamespace(workerinput={})
    with ThreadPoolExecutor(WORKERS) as threads:
        answers = []
        for _ in range(WORKERS):
            controller.pytest_configure_node(node)
            worker = WorkerServers(Place(*node.workerinput[DESK]))
            answers.append(threads.submit(worker.provide, TESTS))
    return answers


def test_each_kind_starts_once_beside_the_others(
    controller: ServerSession, played: type[PlayedServer]
) -> None:
    both = Barrier(2, timeout=10)
    played.begun = lambda *_: both.wait()
    running = {alias: f"mysql://root:@127.0.0.1:1/{alias}" for alias in ALIASES}
    assert [each.result() for each in asked(controller)] == [(running, {})] * WORKERS
    assert sorted(played.started) == ALIASES
    assert controller._report("two", "Two") == "MySQL two: played in 1.0 s, 3 tests"


def test_nothing_starts_that_nobody_asks_for(
    controller: ServerSession, played: type[PlayedServer]
) -> None:
    assert list(controller.provide({"two": 1})[0]) == played.started == ["two"]
    assert controller._report("one", "One") == "One: not needed (played)"


def refuse(server: PlayedServer, alias: str) -> None:
    if alias == "one":
        raise DidNotStart("no room")


def test_all_are_told_why_a_server_did_not_start(
    controller: ServerSession, played: type[PlayedServer]
) -> None:
    played.begun = refuse
    for each in asked(controller):
        running, missing = each.result()
        assert list(running) == ["two"]
        assert missing == {"one": "played, it did not come up: no room"}
    assert sorted(played.started) == ALIASES
    assert "NOT TESTED: played, it did not come up: no room" in controller._report("one", "One")


def test_all_are_refused_without_a_server_that_is_required(
    controller: ServerSession, played: type[PlayedServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REQUIRE, "one")
    played.begun = refuse
    for each in asked(controller):
        with pytest.raises(Unusable, match="One: played, it did not come up: no room"):
            each.result()


def test_a_server_that_is_starting_when_the_session_ends_is_ended_too(
    controller: ServerSession, played: type[PlayedServer]
) -> None:
    starting, go_on = Event(), Event()
    played.begun = lambda *_: (starting.set(), go_on.wait(10))
    with ThreadPoolExecutor(2) as threads:
        threads.submit(controller.provide, {"one": 1})
        assert starting.wait(10)
        ending = threads.submit(controller.fleet.close)
        while not controller.fleet._is_closed:
            assert not ending.done()
        go_on.set()
    assert played.closed == ["one"]
    with pytest.raises(Unusable, match="have ended"):
        controller.provide({"two": 1})


def test_a_desk_answers_who_knows_its_word() -> None:
    desk = Desk(lambda question: question * 2)
    assert desk.place.ask([1, "a"]) == [1, "a", 1, "a"]
    with pytest.raises(Unusable, match="does not answer"):
        Place(desk.place.port, "guessed").ask(1)
    desk.close()
    with pytest.raises(ConnectionRefusedError):
        desk.place.ask(1)
