"""One rule for code of the project: ``project_code.contained`` calls it, and nothing else does.

Found in the syntax of the packages: names that stand for what a project gives, parameters and
attributes of the types of such, and what sends a signal. Payload codecs are the queue's own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "steady_queue_core", "steady_queue_postgres", "steady_queue_mysql", "steady_queue_sqlite",
)  # fmt: skip

#: The types of functions that a project gives, and names under which they are used.
TYPES = {"Backoff", "CallKey", "ErrorReporter", "FunctionT", "KeyFunction", "ReceiverT"}
NAMES = {
    "_backoff", "_error_reporter", "_fair_key", "_function", "_shard_key", "backoff",
    "error_reporter", "fair_key", "func", "function", "key", "receiver", "reporter", "shard_key",
}  # fmt: skip
#: Of what a project gives that has methods: the type, names, and the methods.
OBJECTS, OBJECT_NAMES = {"Middleware"}, {"member", "middleware"}
METHODS = {"enqueue", "inherited", "execute", "aexecute"}
#: What sends a signal, or takes its receivers.
SENDING, TAKING = {"asend", "asend_robust", "send_robust"}, {"_live_receivers", "_sync_receivers"}

#: What a module has to have in its text to be looked at.
WORDS = re.compile(
    rf"\b(?:{'|'.join(NAMES)})\(|\b(?:{'|'.join([*TYPES, *OBJECTS, *TAKING])})\b"
    rf"|\.(?:{'|'.join([*SENDING, *METHODS, 'send'])})\("
)

#: The functions that may do so, and why.
EXEMPTED = {
    "steady_queue_core.project_code.contained": "the rule itself",
    "steady_queue_core.signals._send_now": "the one that calls receivers, each by itself",
    "steady_queue_core.hooks.Hook.__call__.receiver": "is a receiver itself",
    "steady_queue_core.hooks.on_internal_error.receiver": "is a receiver itself",
    "steady_queue_core.middleware.MiddlewareChain.inherited": "is called by contained() itself",
    "steady_queue_core.middleware._enqueue": "an exception is raised to who enqueues",
    "steady_queue_core.processes.worker.running_attempt.RunningAttempt.call": (
        "what it raises ends the attempt"
    ),
    "steady_queue_core.processes.worker.running_attempt.RunningAttempt.acall": "likewise",
    "steady_queue_core.tasks.steps.AttemptSteps._take": "a part of a task, called by the task",
    "steady_queue_core.tasks.steps.AttemptSteps.astep": "likewise",
    "steady_queue_core.testing.transactions._Block._commit": "is in the test's own call",
    "steady_queue_core.admin.columns.column.decorate.shown": "a column of the queue's own",
}

MESSAGE = (
    "{where} calls code of the project: {call}\nIt may raise anything, even SystemExit, which "
    "would end a thread, a loop or a process. Call it by project_code.contained(), send signals by "
    "signals.send(), or add {function!r} to EXEMPTED, with a reason."
)


class Finder(ast.NodeVisitor):
    """Finds the calls in a module, with the names of the functions that they are in."""

    def __init__(self, module: str, tree: ast.Module) -> None:
        self.scope, self.found = [module], list[tuple[str, ast.AST]]()
        self.names, self.objects = NAMES | annotated(tree, TYPES), annotated(tree, OBJECTS)
        self.objects |= OBJECT_NAMES
        self.visit(tree)

    def visit_scope(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.scope.append(node.name)
        self.generic_visit(node)
        self.scope.pop()

    visit_ClassDef = visit_FunctionDef = visit_AsyncFunctionDef = visit_scope

    def visit_Call(self, node: ast.Call) -> None:
        if self.is_of_the_project(node):
            self.note(node)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in TAKING:
            self.note(node)
        self.generic_visit(node)

    def note(self, node: ast.AST) -> None:
        self.found.append((".".join(self.scope), node))

    def is_of_the_project(self, call: ast.Call) -> bool:
        called, name = call.func, name_of(call.func)
        if name in self.names:
            return True
        if not isinstance(called, ast.Attribute):
            return False
        if called.attr == "send":
            return any(each.arg == "sender" for each in call.keywords)
        return called.attr in SENDING or (
            called.attr in METHODS and name_of(called.value) in self.objects
        )


def name_of(node: ast.AST) -> str:
    """Return the last name of ``a`` or ``x.a``."""
    return str(node.id if isinstance(node, ast.Name) else getattr(node, "attr", ""))


def annotated(tree: ast.Module, types: set[str]) -> set[str]:
    """Return the names of parameters, variables and attributes of one of ``types``, or ``None``."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            target: ast.AST = ast.Name(node.arg)
        elif isinstance(node, ast.AnnAssign):
            target = node.target
        else:
            continue
        if node.annotation is not None and types & set(parts(node.annotation)):
            found.add(name_of(target))
    return found


def parts(annotation: ast.expr) -> Iterator[str]:
    """Yield the names in a union of types."""
    if isinstance(annotation, ast.BinOp):
        yield from parts(annotation.left)
        yield from parts(annotation.right)
    else:
        yield name_of(annotation)


def calls_in(source: str, module: str = "module") -> list[tuple[str, str]]:
    """Return the functions that call code of the project, and the calls."""
    if not WORDS.search(source):
        return []
    found = Finder(module, ast.parse(source)).found
    return [(function, ast.unparse(node)) for function, node in found]


def modules() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package / package).rglob("*.py")):
            if "conformance" in path.parts:
                continue  # Tests, of which the threads are their own.
            yield ".".join(path.relative_to(ROOT / package).with_suffix("").parts), path


def test_nothing_but_one_function_calls_code_of_the_project() -> None:
    used, problems = set(), []
    for module, path in modules():
        for function, call in calls_in(path.read_text(), module):
            used.add(function)
            if function not in EXEMPTED:
                where = path.relative_to(ROOT)
                problems.append(MESSAGE.format(where=where, call=call, function=function))
    assert not problems, "\n\n".join(problems)
    assert used == EXEMPTED.keys(), f"needed no more: {sorted(EXEMPTED.keys() - used)}"


@pytest.mark.parametrize(
    "planted",
    [
        "task.backoff(error, result)",
        "self.backend.error_reporter(error, result)",
        "process_started.send(sender=Worker, pid=1)",
        "task_finished.send_robust(Backend)",
        "await task_finished.asend(Backend)",
        "signal._live_receivers(sender)",
        "middleware.inherited(headers)",
        "return task._fair_key(*args)",
        "given(*args)",
        "self._mine(task)",
        "around.execute(context, run)",
    ],
)
def test_a_call_that_is_planted_is_found(planted: str) -> None:
    source = (
        "class Some:\n"
        "    _mine: KeyFunction | None\n"
        f"    async def do(self, given: CallKey, around: Middleware):\n        {planted}\n"
    )
    [(function, call)] = calls_in(source)
    assert (function, call in planted) == ("module.Some.do", True)


@pytest.mark.parametrize(
    "allowed",
    [
        "contained(task.backoff, error, result)",
        "send(process_started, Worker, pid=1)",
        "self._frames.send(job)",
        "backend.enqueue(task, args, kwargs)",
        "contained(chain.inherited, headers)",
    ],
)
def test_other_calls_are_not(allowed: str) -> None:
    assert calls_in(allowed) == []
