"""References to results of other jobs in stored arguments."""

from __future__ import annotations

import pytest

from steady_queue_core import arguments
from steady_queue_core.arguments import DeserializationError, ParentResult

pytestmark = pytest.mark.shared


def test_references_come_back_as_they_are_or_as_values() -> None:
    text = arguments.encode_call([ParentResult(3), [ParentResult(0)]], {"x": (ParentResult(1),)})
    args, kwargs = arguments.decode_call(text, resolve_models=False)
    assert (args, kwargs) == ([ParentResult(3), [ParentResult(0)]], {"x": (ParentResult(1),)})
    args, kwargs = arguments.decode_call(
        text, resolve_models=True, result_of=lambda each: each.number
    )
    assert (args, kwargs) == ([3, [0]], {"x": (1,)})
    assert arguments.has_references(text)
    assert not arguments.has_references(arguments.encode_call([1, "a"], {}))


@pytest.mark.parametrize("stored", ["-1", "true", '"1"', "1.0", "null", "[1]", "4294967296", "{}"])
@pytest.mark.parametrize("resolves", [False, True])
def test_anything_else_is_refused(stored: str, resolves: bool) -> None:
    text = f'{{"args":[{{"__sq_result__":{stored}}}],"kwargs":{{}}}}'
    result_of = (lambda each: each) if resolves else None
    with pytest.raises(DeserializationError):
        arguments.decode_call(text, resolve_models=resolves, result_of=result_of)


def test_text_of_a_user_is_no_reference() -> None:
    text = arguments.encode_call([{"__sq_result__": 1}], {})
    args, _ = arguments.decode_call(text, resolve_models=True, result_of=lambda _: "secret")
    assert args == [{"__sq_result__": 1}]
