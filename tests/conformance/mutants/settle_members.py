"""Members of batches that end wrongly together with their settlements."""

from __future__ import annotations

from steady_queue_core.dialects import MemberState
from steady_queue_sqlite.members import end_members

from .mutant import commit, fails, rows, sqlite

both, members = sqlite.steady_queue_settle_and_claim, sqlite.steady_queue_settle_members


@fails("the_settlement_of_the_last_member_ends_its_batch",
       "what_a_settlement_leaves_of_a_batch_is_another_one",
       "of_two_batches_the_one_that_ends_does",
       "settlements_of_the_last_two_members_do_not_overlook_each_other",
       "settlements_of_members_at_once_end_their_batch_once",
       "members_with_limits_pass_their_permits_on", hook="settle_members")  # fmt: skip
def never_declines(connection, outcomes, process, selector, limit):
    held, claims = both(connection, outcomes, process, selector, limit)
    with connection.cursor() as cursor:
        end_members(cursor, [each for each in outcomes if each.ends_member])
    return held, claims


@fails("members_end_as_their_jobs_do", "an_open_batch_waits_for_more",
       "members_pass_their_permits_to_heirs",
       "a_batch_within_a_batch_is_a_member_that_is_left", hook="settle_members")  # fmt: skip
def forgets_members(connection, outcomes, process, selector, limit):
    return both(connection, outcomes, process, selector, limit)


@fails("members_end_as_their_jobs_do", hook="settle_members")
def ends_members_of_lost_claims(connection, outcomes, process, selector, limit):
    done = members(connection, outcomes, process, selector, limit)
    if done is not None:
        with connection.cursor() as cursor:
            end_members(cursor, [each for each in outcomes if each.ends_member])
    return done


@fails("members_end_as_their_jobs_do", hook="settle_members")
def tells_no_failure_from_a_success(connection, outcomes, process, selector, limit):
    done = members(connection, outcomes, process, selector, limit)
    ended = rows(connection, "BatchMember").exclude(state=MemberState.PENDING)
    ended.update(state=MemberState.SUCCEEDED)
    return done


@fails("members_that_have_ended_stay_as_they_are", hook="settle_members")
def ends_members_twice(connection, outcomes, process, selector, limit):
    done = members(connection, outcomes, process, selector, limit)
    ended = rows(connection, "BatchMember").filter(job_id__in=[each.job_id for each in outcomes])
    ended.update(state=MemberState.SUCCEEDED)
    return done


@fails("a_settlement_of_members_claims_as_any_other", hook="settle_members")
def claims_nothing(connection, outcomes, process, selector, limit):
    done = members(connection, outcomes, process, selector, 0)
    return done and (done[0], [])


@fails("the_settlement_of_the_last_member_ends_its_batch", hook="settle_members")
def settles_what_it_declines(connection, outcomes, process, selector, limit):
    done = members(connection, outcomes, process, selector, limit)
    if done is None:
        both(connection, outcomes, process, selector, limit)
    return done


@fails("members_end_in_the_transaction_of_their_settlement", hook="settle_members")
def commits_what_it_ends(connection, outcomes, process, selector, limit):
    done = members(connection, outcomes, process, selector, limit)
    commit(connection)
    return done
