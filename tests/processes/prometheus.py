"""A Prometheus of its own for a test."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from .test_probes import free_port
from .waiting import wait_for

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "prometheus"
RULES = EXAMPLES / "steady-queue.rules.yml"

CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: probe
    static_configs: [{{targets: ["127.0.0.1:{probe}"]}}]
  - job_name: web
    authorization: {{credentials: {token}}}
    static_configs: [{{targets: ["127.0.0.1:{web}"]}}]
  - job_name: itself
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def program(name: str) -> str:
    """Return the path of a program of Prometheus; skip the test where it is missing."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian's package prometheus has it)")
    return found


class Prometheus:
    """A server that scrapes a probe and a web process each second, and evaluates the rules of the
    example without delay."""

    def __init__(self, folder: Path, *, probe: int, web: int, token: str) -> None:
        folder.mkdir()
        rules = folder / "rules.yml"
        # What lasts for minutes in the example counts at once here.
        text = RULES.read_text()
        for minutes in ("2m", "5m"):
            text = text.replace(f"for: {minutes}", "for: 0s")
        rules.write_text(text)
        configuration = folder / "prometheus.yml"
        self.port = free_port()
        configuration.write_text(
            CONFIGURATION.format(rules=rules, probe=probe, web=web, token=token, port=self.port)
        )
        with open(folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                [
                    program("prometheus"),
                    f"--config.file={configuration}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.log = folder / "log"

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer, or ``None`` while there is none."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urlencode(parameters)}"
        try:
            with urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except OSError:
            assert self._process.poll() is None, self.log.read_text()
            return None

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return the labels and the present value of each series."""
        found = self.get("query", query=expression)
        return [(each["metric"], float(each["value"][1])) for each in (found or {})["result"]]

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        found = self.get("alerts")
        return {
            each["labels"]["alertname"] for each in found["alerts"] if each["state"] == "firing"
        }

    def evaluated(self) -> int:
        """Return how often the rules were evaluated."""
        found = self.query("prometheus_rule_group_iterations_total")
        return int(sum(value for _, value in found))

    def wait_evaluated(self, times: int = 3) -> None:
        """Wait until the rules were evaluated so many times from now on, with what was scraped."""
        before = self.evaluated()
        wait_for(lambda: self.evaluated() >= before + times, 30, "evaluations of the rules")

    def rules(self) -> list[dict[str, Any]]:
        found = self.get("rules")
        return [rule for group in found["groups"] for rule in group["rules"]]

    def wait_scraped(self) -> None:
        """Wait until all targets are up."""

        def up() -> bool:
            if self.get("targets") is None:
                return False
            return [value for _, value in self.query("up")] == [1, 1, 1]

        try:
            wait_for(up, 30, "all targets")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.get('targets')}") from None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
