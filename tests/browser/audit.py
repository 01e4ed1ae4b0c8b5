"""What keeps people from using a page, as far as axe-core finds it."""

from __future__ import annotations

from typing import Any, NamedTuple

from .chromium import axe_script
from .tab import Tab

#: Rules of axe-core that depend on colours.
COLOURS = ("color-contrast", "link-in-text-block")
#: And on how wide a window is.
SIZES = ("scrollable-region-focusable",)
CHECK = """async ([rules, known]) => {
    // The colours of links change within a while.
    document.documentElement.offsetWidth;
    document.getAnimations().forEach((each) => each.finish());
    const options = { resultTypes: ["violations"] };
    if (rules) options.runOnly = { type: "rule", values: rules };
    const found = await axe.run(document, options);
    const isKnown = (rule, target) => known.some(([name, selector]) =>
        name === rule && document.querySelector(target)?.matches(selector));
    return found.violations.flatMap(({ id, nodes }) => nodes
        .filter(({ target }) => !isKnown(id, target[0]))
        .map(({ target, html, failureSummary }) =>
            `${id}: ${target[0]}: ${html.slice(0, 200)}: ${failureSummary}`
                .replaceAll("\\n", " ")));
}"""


class Known(NamedTuple):
    """What Django's own templates and styles do, here and on every page of its admin."""

    rule: str
    selector: str
    reason: str


KNOWN = (
    Known("link-in-text-block", ".breadcrumbs a", "Django tells them apart by their arrows alone"),
)


def audit(tab: Tab, *rules: str) -> list[str]:
    """Return what breaks these rules, or any. Forgets troubles: the check breaks the policy."""
    if not tab.evaluate("typeof axe === 'object'"):
        tab.evaluate(axe_script())
    known = [[each.rule, each.selector] for each in KNOWN]
    found: list[Any] = tab.evaluate(CHECK, [list(rules), known] if rules else [None, known])
    tab.take_troubles()
    return [str(each) for each in found]
