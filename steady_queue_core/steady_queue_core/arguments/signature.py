"""Checks that a task's function accepts the arguments of a call."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ContextDecorator
from functools import lru_cache
from inspect import Parameter
from typing import Any, get_type_hints

#: The wrapper of decorators such as ``transaction.atomic``, which passes on all arguments.
_TRANSPARENT = ContextDecorator()(lambda: None).__code__
_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_FIRST = (*_BY_POSITION, Parameter.VAR_POSITIONAL)
_NAMED = (*_BY_POSITION, Parameter.KEYWORD_ONLY)


# Since Python 3.14 annotations are evaluated when they are asked for: those that only type checkers
# know would raise NameError.
if sys.version_info >= (3, 14):
    from annotationlib import Format

    _OF_SIGNATURES: dict[str, Any] = {"annotation_format": Format.FORWARDREF}
    _OF_HINTS: dict[str, Any] = {"format": Format.FORWARDREF}
else:
    _OF_SIGNATURES, _OF_HINTS = dict[str, Any](), dict[str, Any]()


def read_signature(function: Callable[..., Any], *, follow_wrapped: bool = True) -> Any:
    """Return the ``inspect.Signature`` of a function, whatever names its annotations have."""
    return inspect.signature(function, follow_wrapped=follow_wrapped, **_OF_SIGNATURES)


def read_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function. May raise anything for what cannot be resolved."""
    return get_type_hints(function, **_OF_HINTS)


class Signature:
    """The parameters of a task's function, without the context."""

    __slots__ = (
        "_any_keyword", "_any_position", "_keywords", "_least", "_names", "_positional_only",
        "_required_keywords", "_reserved", "_signature", "context",
    )  # fmt: skip

    def __init__(self, function: Callable[..., Any], takes_context: bool) -> None:
        whole = read_signature(_unwrapped(function), follow_wrapped=False)
        parameters = list(whole.parameters.values())
        first = next((each for each in parameters if each.kind in _FIRST), None)
        #: The name of the parameter for the context, if there is one.
        self.context = first.name if takes_context and first is not None else None
        if self.context is not None and first is not None and first.kind in _BY_POSITION:
            parameters.remove(first)
        is_named = first is not None and first.kind is Parameter.POSITIONAL_OR_KEYWORD
        # Nobody may pass it by name, though the function takes any.
        self._reserved = self.context if is_named else None
        self._signature = whole.replace(parameters=parameters)
        positional = [each for each in parameters if each.kind in _BY_POSITION]
        by_keyword = [each for each in parameters if each.kind is Parameter.KEYWORD_ONLY]
        self._names = [each.name for each in positional]
        self._least = sum(each.default is Parameter.empty for each in positional)
        self._positional_only = sum(each.kind is Parameter.POSITIONAL_ONLY for each in positional)
        self._required_keywords = [
            each.name for each in by_keyword if each.default is Parameter.empty
        ]
        self._keywords = {
            *self._names[self._positional_only :], *(each.name for each in by_keyword)
        }  # fmt: skip
        kinds = {each.kind for each in parameters}
        self._any_position = Parameter.VAR_POSITIONAL in kinds
        self._any_keyword = Parameter.VAR_KEYWORD in kinds

    def __str__(self) -> str:
        parameters = [
            each.replace(annotation=Parameter.empty) for each in self._signature.parameters.values()
        ]
        return str(
            self._signature.replace(parameters=parameters, return_annotation=Parameter.empty)
        )

    def misfit(self, args: Sequence[object], kwargs: Mapping[str, object]) -> str | None:
        """Return why the function does not accept these arguments, or ``None`` if it does."""
        if self._fits(args, kwargs):
            return None
        if self._reserved in kwargs and self._any_keyword:
            return f"{self._reserved!r} is the context, which the worker passes"
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            return str(error)
        # A positional-only parameter was passed by name, and so went to **kwargs.
        return f"missing a required argument: {self._names[len(args)]!r}"

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments that the function accepts by the names of their parameters, without
        those that are left out."""
        return dict(self._signature.bind(*args, **kwargs).arguments)

    @property
    def names(self) -> list[str]:
        """The names of the parameters that take one argument each."""
        known = self._signature.parameters.values()
        return [each.name for each in known if each.kind in _NAMED]

    def has(self, name: str) -> bool:
        """Whether a call may have an argument of this name."""
        return self._any_keyword or name in self.names

    def value_of(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the argument of this name in a call that fits, or its default.

        Raises ``LookupError`` if it has none.
        """
        parameter = self._signature.parameters.get(name)
        if parameter is None or parameter.kind not in _NAMED:
            return kwargs[name]
        if name in self._names and (position := self._names.index(name)) < len(args):
            return args[position]
        if name in kwargs and parameter.kind is not Parameter.POSITIONAL_ONLY:
            return kwargs[name]
        return parameter.default

    def _fits(self, args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
        # Runs at every enqueue, and is ten times as fast as Signature.bind().
        count = len(args)
        if count > len(self._names) and not self._any_position:
            return False
        if not kwargs:
            return count >= self._least and not self._required_keywords
        if self._any_keyword:
            if self._reserved in kwargs:
                return False
        elif not kwargs.keys() <= self._keywords:
            return False
        return (
            count >= min(self._least, self._positional_only)
            and all(name in kwargs for name in self._names[count : self._least])
            and all(name in kwargs for name in self._required_keywords)
            and not any(name in kwargs for name in self._names[self._positional_only : count])
        )


@lru_cache(maxsize=10_000)
def signature_of(function: Callable[..., Any], takes_context: bool) -> Signature | None:
    """Return the signature of a task's function, or ``None`` if it has none."""
    try:
        return Signature(function, takes_context)
    except (TypeError, ValueError):
        return None


def takes_any_position(function: Callable[..., Any]) -> bool:
    """Whether a decorator takes all positional arguments of a function, and may give it others."""
    outer = read_signature(_unwrapped(function), follow_wrapped=False)
    kinds = {each.kind for each in outer.parameters.values()}
    return Parameter.VAR_POSITIONAL in kinds and hasattr(_unwrapped(function), "__wrapped__")


def require_fit(task: Any, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Raise ``TypeError`` if the function of ``task`` cannot be called with these arguments."""
    signature = signature_of(task.func, task.takes_context)
    problem = signature.misfit(args, kwargs) if signature is not None else None
    if problem is not None:
        raise TypeError(
            f"{task.module_path}{signature} cannot be called with these arguments: {problem}"
        )


def location_of(function: Any) -> str:
    """Return the path of a function, with its file and line if they are known."""
    names = [getattr(function, name, None) for name in ("__module__", "__qualname__")]
    path = ".".join(map(str, filter(None, names))) or repr(function)
    code = getattr(inspect.unwrap(function), "__code__", None)
    return path if code is None else f"{path} ({code.co_filename}:{code.co_firstlineno})"


def _unwrapped(function: Any) -> Any:
    """Return the function inside wrappers that pass on all arguments."""
    while getattr(function, "__code__", None) is _TRANSPARENT:
        function = function.__wrapped__
    return function
