"""Model instances by name and primary key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from .errors import DeserializationError
from .paths import quoted, type_name

_KEY_TYPES = (int, float, str, bytes, tuple, Decimal, UUID, date, time, timedelta)


@dataclass(frozen=True)
class ModelReference:
    """A model instance that was stored and has not been fetched."""

    app_label: str
    #: The model's name in lower case, as in ``Model._meta.model_name``.
    model: str
    pk: Any
    #: The alias of the database it was read from; empty if the routers choose that for its model.
    using: str = ""

    def __str__(self) -> str:
        return f"{quoted(self.app_label)}.{quoted(self.model)}"


def is_instance(value: object) -> bool:
    """Say whether ``value`` is a model instance, or a lazy object around one.

    ``request.user`` is such a lazy object.
    """
    from django.db.models import Model

    try:
        return isinstance(value, Model)
    except Exception:  # ``__class__`` of an unknown object may do anything
        return False


def reference_to(instance: Any) -> ModelReference:
    """Return the reference to ``instance``; its ``pk`` is ``None`` if it was never saved."""
    meta, pk = instance._meta, instance.pk
    if (type(pk) is tuple and None in pk) or _is_new(instance):
        pk = None
    return ModelReference(meta.app_label, meta.model_name, pk, _alias_of(instance))


def _alias_of(instance: Any) -> str:
    """Return the database of an instance, unless it is one that the routers name for its model."""
    from django.db import router

    using, model = instance._state.db, instance._meta.concrete_model
    if using is None or using in (router.db_for_write(model), router.db_for_read(model)):
        return ""
    return str(using)


def _is_new(instance: Any) -> bool:
    """Whether an instance has its primary key from a default, and no row yet.

    One that was made with the key of a row, to stand for that, cannot be told from it where the
    field has a default: ``save()`` would insert it as well.
    """
    from django.db.models.expressions import DatabaseDefault

    return instance._state.adding and any(
        field.has_default() or isinstance(getattr(instance, field.attname), DatabaseDefault)
        for field in instance._meta.pk_fields
    )


def read(stored: Any) -> ModelReference:
    """Return the reference that is stored as ``[app_label, model, pk]``, or with an alias after
    these.

    :raises TypeError, ValueError: ``stored`` has another form
    """
    app_label, model, pk, *using = stored
    names = [app_label, model, *using]
    if type(stored) is not list or len(using) > 1 or any(type(each) is not str for each in names):
        raise TypeError("not a reference")
    if not isinstance(pk, _KEY_TYPES):
        raise TypeError("not a primary key")
    return ModelReference(app_label, model, pk, *using)


def fetch(reference: ModelReference) -> Any:
    """Return the instance behind ``reference``, read from its database, or from that which the
    routers name for writing: a replica may not have it yet.

    Uses the base manager, so rows that the default manager hides are found. Errors of the
    database itself, such as a lost connection, are passed on.

    :raises DeserializationError: the model or the row does not exist, or the key does not fit
    """
    from django.apps import apps
    from django.core.exceptions import ObjectDoesNotExist, ValidationError
    from django.db import DataError, connections, router

    name = f"{quoted(reference.app_label)}, {quoted(reference.model)}"
    try:
        model = apps.get_model(reference.app_label, reference.model)
    except (LookupError, ValueError):
        raise DeserializationError(
            f"No model ({name}) is installed: it was renamed or removed after the job was enqueued."
        ) from None
    if model._meta.swapped or model._meta.abstract:
        raise DeserializationError(f"The model ({name}) has no table of its own.")
    label = model._meta.label
    if reference.using and reference.using not in connections:
        raise DeserializationError(
            f"{label} was read from the database {quoted(reference.using)}, which DATABASES does "
            "not name here."
        )
    using = reference.using or router.db_for_write(model)
    try:
        return model._base_manager.using(using).get(pk=reference.pk)
    except ObjectDoesNotExist:
        raise DeserializationError(
            f"{label} with primary key {_shown(reference.pk)} does not exist: it was deleted "
            "after the job was enqueued, or enqueued before its transaction was committed."
        ) from None
    except (TypeError, ValueError, OverflowError, ValidationError, DataError):
        raise DeserializationError(
            f"{_shown(reference.pk)} cannot be a primary key of {label}."
        ) from None


def _shown(pk: object) -> str:
    if isinstance(pk, str):
        return quoted(pk)
    if isinstance(pk, (UUID, date)) or (isinstance(pk, int) and pk.bit_length() <= 64):
        return str(pk)
    return f"<{type_name(type(pk))}>"
