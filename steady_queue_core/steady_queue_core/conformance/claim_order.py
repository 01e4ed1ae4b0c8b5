"""Claiming: the order of jobs and queues, and paused queues."""

from __future__ import annotations

from functools import partial

from django.db.transaction import atomic

from .base import ConformanceCase, new_job


class ClaimOrderCases(ConformanceCase):
    def place(self, *places: str) -> None:
        """Enqueue jobs in this order, each given as ``queue:rank``."""
        pairs = [place.rpartition(":") for place in places]
        self.enqueue(*[new_job(name, rank=int(rank)) for name, _, rank in pairs])

    def taken(self, limit: int, *patterns: str) -> list[str]:
        """Claim, and return the jobs in the form in which they were given."""
        return [f"{claim.queue_name}:{claim.rank}" for claim in self.claim(limit, *patterns)]

    def test_the_smaller_rank_comes_first_over_all_queues(self) -> None:
        self.place("b:5", "a:5", "c:-100", "a:100", "b:0")
        self.assertEqual(self.taken(3), ["c:-100", "b:0", "b:5"])
        self.assertEqual(self.taken(3), ["a:5", "a:100"])

    def test_among_equal_ranks_the_older_job_comes_first(self) -> None:
        ids = [*self.enqueue_many(3, "b"), *self.enqueue_many(3, "a")]
        self.assertEqual([claim.job_id for claim in self.claim(4)], ids[:4])
        self.assertEqual([claim.job_id for claim in self.claim(4)], ids[4:])

    def test_named_queues_come_in_the_order_named_before_rank(self) -> None:
        self.place("a:-9", "b:0", "b:-1", "c:-50", "a:3")
        self.assertEqual(self.taken(10, "b", "a"), ["b:-1", "b:0", "a:-9", "a:3"])

    def test_the_limit_spans_the_queues(self) -> None:
        self.place("a:0", "b:0", "b:1", "a:1")
        self.assertEqual(self.taken(3, "a", "b"), ["a:0", "a:1", "b:0"])

    def test_a_prefix_takes_its_queues_by_name(self) -> None:
        self.place("mail_b:0", "mail_a:9", "mail:5", "post:0", "mai:0")
        self.assertEqual(self.taken(10, "mail*"), ["mail:5", "mail_a:9", "mail_b:0"])

    def test_names_and_prefixes_mix_and_a_queue_is_polled_once(self) -> None:
        self.place("a1:0", "b:0", "a2:0", "a1:1")
        self.assertEqual(self.taken(10, "a2", "a*", "b", "a1"), ["a2:0", "a1:0", "a1:1", "b:0"])

    def test_a_star_among_names_takes_all_by_rank(self) -> None:
        self.place("a:5", "b:1", "c:3")
        self.assertEqual(self.taken(10, "a", "*"), ["b:1", "c:3", "a:5"])

    def test_queues_that_are_not_served_are_left_alone(self) -> None:
        self.place("a:0", "b:0", "ab:0")
        self.assertEqual(self.taken(10, "a"), ["a:0"])
        self.assertEqual(len(self.ids("Ready")), 2)

    def test_paused_queues_are_left_out(self) -> None:
        self.place("a:0", "b:0", "a2:0")
        self.pause("a")
        self.assertEqual(self.taken(10, "a", "b"), ["b:0"])
        self.assertEqual(self.taken(10, "a*"), ["a2:0"])
        self.rows("Pause").all().delete()
        self.assertEqual(self.taken(10, "a", "b"), ["a:0"])

    def test_with_a_paused_queue_all_the_others_still_come_by_rank(self) -> None:
        """Over several claims, with paused jobs first, last and in between."""
        self.place("c:-5", "b:1", "a:9", "c:0", "b:0", "a:0", "b:-100", "c:9", "d:9")
        self.pause("c")
        self.assertEqual(self.taken(2), ["b:-100", "b:0"])
        self.place("d:-1")
        self.assertEqual(self.taken(3), ["d:-1", "a:0", "b:1"])
        self.assertEqual(self.taken(10), ["a:9", "d:9"])
        self.assertEqual(self.taken(10), [])
        self.rows("Pause").all().delete()
        self.assertEqual(self.taken(10), ["c:-5", "c:0", "c:9"])

    def test_a_pause_of_another_queue_changes_nothing(self) -> None:
        for name in ("elsewhere", "a queue without jobs"):
            self.pause(name)
            self.place("b:0", "a:9", "c:-1", "a:5")
            self.assertEqual(self.taken(2, "b", "a"), ["b:0", "a:5"])
            self.assertEqual(self.taken(10), ["c:-1", "a:9"])

    def test_many_jobs_of_a_paused_queue_are_passed_over(self) -> None:
        """Paused jobs of several ranks, before and among the others. Later jobs are not missed."""
        self.enqueue(*[new_job("paused", rank=rank) for rank in (-9, -5, 0) for _ in range(150)])
        self.place("b:0", "a:-5", "b:7", "a:7", "b:0")
        self.pause("paused")
        worker = self.register()
        taken: list[str] = []

        def take(limit: int) -> list[str]:
            claims = self.claim(limit, process_id=worker)
            taken.extend(claim.queue_name for claim in claims)
            return [f"{claim.queue_name}:{claim.rank}" for claim in claims]

        self.assertEqual(take(1), ["a:-5"])
        self.assertEqual(take(1), ["b:0"])
        self.place("c:-7", "c:-9", "c:3")
        self.assertEqual(take(2), ["c:-9", "c:-7"])
        self.enqueue(*[new_job("paused", rank=rank) for rank in (-9, 3) for _ in range(150)])
        self.place("d:-9", "d:-8")
        self.assertEqual(take(3), ["d:-9", "d:-8", "b:0"])
        self.assertEqual(take(10), ["c:3", "b:7", "a:7"])
        self.assertEqual(take(10), [])
        self.place("e:-20", "e:0")
        self.assertEqual(take(10), ["e:-20", "e:0"])
        self.rows("Pause").all().delete()
        for _ in self.until_deadline():
            take(200)
            if not self.ids("Ready"):
                break
        self.assertEqual(taken.count("paused"), 750)

    def require_exclusion(self) -> None:
        if not self.dialect.info.excludes_queues:
            self.skipTest("DialectInfo.excludes_queues is false")

    def test_excluded_queues_are_left_out_and_all_others_come_by_rank(self) -> None:
        self.require_exclusion()
        self.place("mail:-9", "a:5", "mail_b:-8", "b:0", "slow:-9", "mai:1", "slower:7", "a:-1")
        self.assertEqual(self.taken(2, "*", "!mail*", "!slow"), ["a:-1", "b:0"])
        self.pause("mai")
        self.assertEqual(self.taken(10, "!slow", "!mail*"), ["a:5", "slower:7"])
        self.rows("Pause").all().delete()
        self.assertEqual(self.taken(10, "!mail*"), ["slow:-9", "mai:1"])
        self.assertEqual(self.taken(10, "!mail"), ["mail_b:-8"])
        self.assertEqual(self.taken(10), ["mail:-9"])

    def test_prefixes_leave_out_what_is_excluded(self) -> None:
        self.require_exclusion()
        self.place("mail_b:0", "mail_a:9", "mail:5", "post:0", "mail_ab:0")
        self.assertEqual(
            self.taken(10, "mail*", "post", "!mail_a*"), ["mail:5", "mail_b:0", "post:0"]
        )
        self.assertEqual(self.taken(10, "mail_a", "mail*", "!mail_a"), ["mail_ab:0"])

    def test_many_jobs_of_an_excluded_queue_are_passed_over(self) -> None:
        """Before and among the others, while some come and go. Later jobs are not missed."""
        self.require_exclusion()
        self.enqueue(*[new_job("mail_a", rank=rank) for rank in (-9, -5, 0) for _ in range(150)])
        self.place("b:0", "a:-5", "b:7")
        worker = self.register()

        def take(limit: int, *patterns: str) -> list[str]:
            claims = self.claim(limit, *(patterns or ("!mail*",)), process_id=worker)
            return [f"{claim.queue_name}:{claim.rank}" for claim in claims]

        self.assertEqual(take(1), ["a:-5"])
        self.assertEqual(take(1), ["b:0"])
        self.place("c:-7", "mail_c:-9", "c:-9", "c:3")
        self.assertEqual(take(2), ["c:-9", "c:-7"])
        self.enqueue(*[new_job("mail_b", rank=rank) for rank in (-9, 3) for _ in range(150)])
        self.place("d:-9", "d:-8")
        self.assertEqual(take(3), ["d:-9", "d:-8", "c:3"])
        self.assertEqual(take(10), ["b:7"])
        self.assertEqual(take(10), [])
        self.place("e:-20", "e:0")
        for _ in self.until_deadline():
            if found := take(10):
                break
        self.assertEqual(found, ["e:-20", "e:0"])
        self.assertEqual(len(take(1000, "mail*")), 751)

    def test_of_many_jobs_beside_a_paused_queue_each_goes_to_one_worker(self) -> None:
        """Jobs that another worker has locked are skipped, however many there are."""
        if not self.dialect.info.skips_locked:
            self.skipTest("DialectInfo.skips_locked is false")
        self.enqueue_many(5, "paused")
        ids = self.enqueue_many(300, "live")
        self.pause("paused")
        first, second = self.register(), self.register()
        for held in (3, 200):
            hold = partial(self.claim, held, process_id=first)
            with self.holding(hold), atomic(using=self.using):
                claims = self.claim(5, process_id=second)
                self.assertEqual([claim.job_id for claim in claims], ids[held : held + 5])
                self.connection.set_rollback(True)

    def test_nothing_is_taken_when_every_queue_is_paused(self) -> None:
        self.place("a:0", "b:0")
        self.pause("a", "b")
        for patterns in (("*",), ("a", "b"), ("a*", "b*")):
            self.assertEqual(self.taken(10, *patterns), [])
