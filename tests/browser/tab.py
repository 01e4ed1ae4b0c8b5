"""A tab of a browser: what it shows, what a user does there, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ..admin.visitor import Visitor
from .engine import Engine

Result = TypeVar("Result")
WIDE, NARROW = 1280, 390
HEIGHT = 800
STICKING_OUT = """() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const wide = [...document.querySelectorAll("body *")]
        .filter((each) => each.getBoundingClientRect().right > clientWidth);
    return [`${scrollWidth} of ${clientWidth} pixels`,
        ...wide.slice(0, 5).map((each) => each.outerHTML.slice(0, 120))];
}"""
HANDLERS = """() => [...document.querySelectorAll("*")]
    .filter((each) => each.getAttributeNames().some((name) => name.startsWith("on")))
    .map((each) => each.outerHTML.slice(0, 120))"""
#: What Chromium says where an address answers with an error: the answer is noted already.
ANSWERED = "Failed to load resource"


class Tab:
    """A tab; of a user, once somebody has signed in."""

    def __init__(
        self,
        engine: Engine,
        origin: str,
        *,
        width: int = WIDE,
        javascript: bool = True,
    ) -> None:
        self._engine = engine
        self._context = engine.new_context(
            base_url=origin,
            viewport={"width": width, "height": HEIGHT},
            java_script_enabled=javascript,
        )
        #: Errors of scripts, violations of the policy, and addresses that do not work.
        self._troubles: list[str] = []
        self._origin = origin
        self._page = engine.do(self._context.new_page)
        self.do(self._listen)

    def close(self) -> None:
        self._engine.do(self._context.close)

    def do(self, what: Callable[[Any], Result]) -> Result:
        """Do something with the page of Playwright."""
        return self._engine.do(what, self._page)

    def sign_in(self, visitor: Visitor) -> None:
        """Be this user from now on, at no page yet."""
        cookies = [
            {"name": name, "value": morsel.value, "url": self._origin}
            for name, morsel in visitor.client.cookies.items()
        ]
        self.open("about:blank")
        self._engine.do(self._context.add_cookies, cookies)

    def allow(self, *permissions: str) -> None:
        """Let pages do what a browser asks its user for."""
        self._engine.do(self._context.grant_permissions, [*permissions])

    # --- what a user does ---

    def open(self, url: str) -> None:
        """Go to an address."""
        self.do(lambda page: page.goto(url))

    def press(self, name: str, role: str = "button") -> None:
        """Click on what leads to another page, and wait for that."""

        self._leave(lambda page: page.get_by_role(role, name=name, exact=True))

    def _leave(self, find: Callable[[Any], Any]) -> None:
        def click(page: Any) -> None:
            with page.expect_navigation():
                find(page).first.click()

        self.do(click)

    def follow(self, name: str) -> None:
        """Click on a link."""
        self.press(name, "link")

    def follow_deletion(self) -> None:
        """Click on the link of a form to the page that deletes; since Django 6.1 it is a button."""
        self._leave(lambda page: page.locator("a.deletelink"))

    def download(self, name: str) -> str:
        """Click on a link to a file, and return what is in it."""

        def click(page: Any) -> str:
            with page.expect_download() as download:
                page.get_by_role("link", name=name, exact=True).click()
            return Path(download.value.path()).read_text()

        return self.do(click)

    def tick(self, label: str) -> None:
        """Tick the row of a list that says this."""
        self.do(lambda page: page.locator("tr", has_text=label).get_by_role("checkbox").check())

    def tick_all(self) -> None:
        """Tick the rows of a list, one by one."""
        self.do(lambda page: [each.check() for each in page.locator(".action-select").all()])

    def fill(self, label: str, text: str) -> None:
        self.do(lambda page: page.get_by_label(label).fill(text))

    def choose(self, action: str) -> None:
        """Choose an action of a list, and begin it."""
        self.do(
            lambda page: page.get_by_role("combobox", name="Action").select_option(label=action)
        )
        # Its label depends on Django's version.
        self._leave(lambda page: page.locator("button[name=index]"))

    def resize(self, width: int) -> None:
        self.do(lambda page: page.set_viewport_size({"width": width, "height": HEIGHT}))

    def darken(self, dark: bool = True) -> None:
        """Prefer dark colours, or light ones, on all pages."""
        self.do(lambda page: page.emulate_media(color_scheme="dark" if dark else "light"))

    # --- what there is ---

    @property
    def title(self) -> str:
        return str(self.do(lambda page: page.title()))

    @property
    def path(self) -> str:
        """The address without the server, and without the query."""
        return "/" + self.do(lambda page: page.url).split("/", 3)[3].partition("?")[0]

    @property
    def text(self) -> str:
        """What is seen of the content."""
        return " ".join(self.do(lambda page: page.locator("#content").inner_text()).split())

    @property
    def messages(self) -> list[str]:
        found = self.do(lambda page: page.locator(".messagelist li").all_inner_texts())
        return [str(each) for each in found]

    @property
    def sticking_out(self) -> list[str]:
        """What makes the page wider than the window; nothing if it is not."""
        return [str(each) for each in self.evaluate(STICKING_OUT)]

    @property
    def handlers(self) -> list[str]:
        """The elements with scripts in attributes, of which a browser tells when these are due."""
        return [f"a handler: {each}" for each in self.evaluate(HANDLERS)]

    def evaluate(self, script: str, *given: Any) -> Any:
        return self.do(lambda page: page.evaluate(script, *given))

    def take_troubles(self) -> list[str]:
        """Return what went wrong since this was asked for the last time."""
        self.evaluate("0")  # What has happened before has arrived then.
        found, self._troubles = self._troubles, []
        return found

    def _listen(self, page: Any) -> None:
        def note_message(message: Any) -> None:
            if message.type in ("error", "warning") and ANSWERED not in message.text:
                self._troubles.append(f"{message.type}: {message.text}")

        def note_answer(answer: Any) -> None:
            if answer.status >= 400:
                self._troubles.append(f"{answer.status}: {answer.url}")

        def note_failure(request: Any) -> None:
            # Leaving a page ends what it waits for.
            if request.failure != "net::ERR_ABORTED":
                self._troubles.append(f"{request.failure}: {request.url}")

        page.on("console", note_message)
        page.on("pageerror", lambda error: self._troubles.append(f"uncaught: {error}"))
        page.on("response", note_answer)
        page.on("requestfailed", note_failure)
