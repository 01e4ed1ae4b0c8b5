"""Jobs taken in the wrong order, or from the wrong queues."""

from __future__ import annotations

from steady_queue_core.dialects import QueueSelector

from .mutant import fails, rows, sqlite
from .taking import take

claim = sqlite.steady_queue_claim


def ready(connection):
    return rows(connection, "ReadyExecution")


@fails("the_smaller_rank_comes_first_over_all_queues", hook="claim")
def ignores_the_rank(connection, process, selector, limit):
    return take(connection, process, ready(connection).order_by("pk")[:limit])


@fails("the_smaller_rank_comes_first_over_all_queues", hook="claim")
def takes_the_larger_rank_first(connection, process, selector, limit):
    return take(connection, process, ready(connection).order_by("-rank", "pk")[:limit])


@fails("among_equal_ranks_the_older_job_comes_first", hook="claim")
def takes_the_newest_first(connection, process, selector, limit):
    return take(connection, process, ready(connection).order_by("rank", "-pk")[:limit])


@fails("among_equal_ranks_the_older_job_comes_first", hook="claim")
def takes_queues_by_name(connection, process, selector, limit):
    order = ("rank", "queue_name", "pk")
    return take(connection, process, ready(connection).order_by(*order)[:limit])


@fails("named_queues_come_in_the_order_named_before_rank",
       "a_prefix_takes_its_queues_by_name", hook="claim")  # fmt: skip
def takes_named_queues_by_rank(connection, process, selector, limit):
    names = sqlite.steady_queue_list_queues(connection, "")
    served = selector.matching(
        lambda prefix: [n for n in names if n.startswith(prefix)], frozenset()
    )
    found = ready(connection).filter(queue_name__in=served).order_by("rank", "pk")
    return take(connection, process, found[:limit])


@fails("the_limit_spans_the_queues", hook="claim")
def applies_the_limit_to_each_queue(connection, process, selector, limit):
    return [
        job
        for pattern in selector.patterns
        for job in claim(connection, process, QueueSelector(patterns=(pattern,)), limit)
    ]


@fails("names_and_prefixes_mix_and_a_queue_is_polled_once", hook="claim")
def takes_prefixes_last(connection, process, selector, limit):
    patterns = tuple(sorted(selector.patterns, key=lambda pattern: "*" in pattern))
    return claim(connection, process, QueueSelector(patterns=patterns), limit)


@fails("a_star_among_names_takes_all_by_rank", hook="claim")
def takes_a_star_for_the_rest_of_the_queues(connection, process, selector, limit):
    if selector.patterns == ("*",):
        return claim(connection, process, selector, limit)
    named = QueueSelector(patterns=tuple(p for p in selector.patterns if p != "*"))
    taken = claim(connection, process, named, limit)
    if selector.takes_all:
        taken += claim(connection, process, QueueSelector(), limit - len(taken))
    return taken


@fails("a_prefix_takes_its_queues_by_name", hook="claim")
def takes_a_prefix_for_a_name(connection, process, selector, limit):
    patterns = tuple(pattern.rstrip("*") or "*" for pattern in selector.patterns)
    return claim(connection, process, QueueSelector(patterns=patterns), limit)


@fails("queues_that_are_not_served_are_left_alone", hook="claim")
def takes_a_name_for_a_prefix(connection, process, selector, limit):
    patterns = tuple(f"{pattern.rstrip('*')}*" for pattern in selector.patterns)
    return claim(connection, process, QueueSelector(patterns=patterns), limit)


def without(connection, pauses, process, selector, limit):
    """Claim with other pauses than there are."""
    kept = list(rows(connection, "Pause"))
    rows(connection, "Pause").delete()
    for name in pauses:
        row = type(kept[0])(queue_name=name, created_at=kept[0].created_at)
        row.save(using=connection.alias, force_insert=True)
    taken = claim(connection, process, selector, limit)
    rows(connection, "Pause").delete()
    for row in kept:
        row.save(using=connection.alias, force_insert=True)
    return taken


@fails("paused_queues_are_left_out", "nothing_is_taken_when_every_queue_is_paused", hook="claim")
def ignores_pauses(connection, process, selector, limit):
    return without(connection, [], process, selector, limit)


@fails("nothing_is_taken_when_every_queue_is_paused", hook="claim")
def sees_one_pause_only(connection, process, selector, limit):
    names = sorted(rows(connection, "Pause").values_list("pk", flat=True))[:1]
    return without(connection, names, process, selector, limit)


def not_paused(connection, *order):
    paused = rows(connection, "Pause").values("pk")
    return ready(connection).exclude(queue_name__in=paused).order_by(*order)


@fails("with_a_paused_queue_all_the_others_still_come_by_rank",
       "a_pause_of_another_queue_changes_nothing", hook="claim")  # fmt: skip
def takes_queues_by_name_beside_a_paused_one(connection, process, selector, limit):
    if not selector.takes_all or not rows(connection, "Pause").exists():
        return claim(connection, process, selector, limit)
    return take(connection, process, not_paused(connection, "queue_name", "rank", "pk")[:limit])


BEHIND = {}


@fails("many_jobs_of_a_paused_queue_are_passed_over", hook="claim")
def goes_on_behind_the_newest_of_all_ranks(connection, process, selector, limit):
    found = not_paused(connection, "rank", "pk").filter(pk__gt=BEHIND.get(process, 0))
    taken = take(connection, process, found[:limit])
    BEHIND[process] = max((job.job_id for job in taken), default=0)
    return taken


@fails("many_jobs_of_a_paused_queue_are_passed_over", hook="claim")
def looks_at_so_many_jobs_and_no_further(connection, process, selector, limit):
    paused = set(rows(connection, "Pause").values_list("pk", flat=True))
    seen = ready(connection).order_by("rank", "pk")[:100]
    return take(connection, process, [row for row in seen if row.queue_name not in paused][:limit])


@fails("a_pause_of_another_queue_changes_nothing", hook="claim")
def stops_altogether_for_a_pause(connection, process, selector, limit):
    if rows(connection, "Pause").exists():
        return []
    return claim(connection, process, selector, limit)


@fails("a_pause_is_of_one_name_alone", hook="claim")
def takes_names_alike_for_paused(connection, process, selector, limit):
    names = rows(connection, "Pause").values_list("pk", flat=True)
    alike = {name for name in selector.patterns if name.casefold() in map(str.casefold, names)}
    patterns = tuple(name for name in selector.patterns if name not in alike)
    return claim(connection, process, QueueSelector(patterns=patterns), limit)


@fails("queue_names_are_distinct", hook="claim")
def takes_queues_in_any_case(connection, process, selector, limit):
    served = [pattern.casefold().strip() for pattern in selector.patterns]
    found = [row for row in ready(connection) if row.queue_name.casefold().strip() in served]
    return take(connection, process, found[:limit])


@fails("excluded_queues_are_left_out_and_all_others_come_by_rank",
       "prefixes_leave_out_what_is_excluded",
       "many_jobs_of_an_excluded_queue_are_passed_over", hook="claim")  # fmt: skip
def excludes_nothing(connection, process, selector, limit):
    return claim(connection, process, QueueSelector(patterns=selector.patterns), limit)


@fails("excluded_queues_are_left_out_and_all_others_come_by_rank", hook="claim")
def excludes_what_begins_like_a_name(connection, process, selector, limit):
    excluded = tuple(f"{entry.rstrip('*')}*" for entry in selector.excluded)
    other = QueueSelector(patterns=selector.patterns, excluded=excluded)
    return claim(connection, process, other, limit)


@fails("many_jobs_of_an_excluded_queue_are_passed_over", hook="claim")
def looks_at_few_jobs_only(connection, process, selector, limit):
    if not selector.excluded:
        return claim(connection, process, selector, limit)
    first = ready(connection).order_by("rank", "pk")[:100]
    served = [row.pk for row in first if not selector.excludes(row.queue_name)]
    found = ready(connection).filter(pk__in=served).order_by("rank", "pk")
    return take(connection, process, found[:limit])
