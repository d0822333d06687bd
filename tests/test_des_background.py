"""Background work: groups of commits, page propagation, checkpoints; what waits has a reason."""

import itertools
import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmsim import des

PLATFORM = {"base": "ucsd-8260", "block_device": "nvme-p4510"}


def committing(size, timeout):
    env = des.Environment()
    server = des.Server(env, [des.LogPart()], platform=PLATFORM, workers=1)
    return env, server, des.GroupCommit(server.main, size=size, timeout=timeout)


def test_a_group_is_closed_when_it_is_full_or_its_first_entry_has_waited_long_enough():
    env, server, commit = committing(3, "10 us")
    ends = {}

    def client(at):
        yield env.timeout(at)
        number, durable = commit.append()
        done = yield durable
        ends[number] = (at, done.submitted, done.end)

    for at in (1_000, 2_000, 3_000, 50_000_000):
        env.process(client(at))
    env.run()
    assert [ends[number][1] for number in range(4)] == [3_000, 3_000, 3_000, 60_000_000]
    assert ends[0][2] == ends[1][2] == ends[2][2]
    assert commit.groups == 2
    assert commit.entries == 4
    assert server.facts()["log.entries"] == 4


def test_a_full_group_costs_one_barrier():
    env, server, commit = committing(8, "1 s")
    for _ in range(16):
        commit.append()
    env.run("1 ms")
    before = server.counters()["persist_barriers"]
    for _ in range(8):
        commit.append()
    env.run("2 ms")
    assert server.counters()["persist_barriers"] == before + 1


@pytest.mark.parametrize("timeout", ["100 ns", "1 us", "10 us"])
def test_a_group_gathers_while_another_is_appended_however_short_its_time_out(timeout):
    """Of groups closed meanwhile each had cost a flush of the device, some 20 us, of one or two entries."""
    env = des.Environment()
    server = des.Server(env, [des.BlockLogPart()], platform=PLATFORM, workers=1)
    commit = des.GroupCommit(server.main, size=64, timeout=timeout, append="block-log.append")
    came = 2_000

    def clients():
        for _ in range(came):
            yield env.timeout("2 us")
            commit.append()
            assert server.waiting == 0

    env.run(env.process(clients()))
    assert commit.entries > came - 64
    assert commit.entries / commit.groups > 4


def test_a_group_that_is_due_is_closed_when_the_append_ends_or_it_is_full():
    env, _, commit = committing(3, "10 ns")
    grants = []

    def client():
        _, durable = commit.append()
        done = yield durable
        grants.append((done.submitted, done.end))

    def clients():
        for at in (0, 20_000, 1_000, 100_000_000, 20_000, 1_000, 1_000):
            yield env.timeout(at)
            env.process(client())

    env.process(clients())
    env.run()
    first, *due = grants[:3]
    assert first[0] == 10_000
    assert {submitted for submitted, _ in due} == {first[1]}
    later, *full = grants[3:]
    assert later[0] == 100_031_000
    assert {submitted for submitted, _ in full} == {100_043_000}
    assert later[1] > 100_043_000


def test_entries_that_gather_are_lost_with_the_power():
    env = des.Environment()
    server = des.Server(env, [des.LogPart(log_size="64 KiB")], platform=PLATFORM, workers=1, crash=True)
    commit = des.GroupCommit(server.main, size=4, timeout="20 us")
    told = []

    def client(at):
        yield env.timeout(at)
        number, durable = commit.append()
        try:
            yield durable
            told.append((number, "durable"))
        except des.PowerFailureError:
            told.append((number, env.now))

    for at in ("1 us", "2 us", "40 us"):
        env.process(client(at))
    env.run("3 us")
    commit.append()  # nobody waits for this one
    env.run("5 us")
    server.power_failure(restart_after="1 us")
    env.run("1 ms")
    assert told == [(0, 5 * des.US), (1, 5 * des.US), (3, "durable")]
    assert server.present() == [3]
    assert (commit.groups, commit.entries) == (1, 1)


def dirtying(background):
    env = des.Environment()
    server = des.Server(
        env,
        [des.PagesPart(pages=256, dirty_lines=32)],
        platform=PLATFORM,
        workers={"clients": 2, "writers": 2},
    )
    dirty = des.DirtyPages(env, limit=32)
    latencies = []
    if background:
        propagation = des.PagePropagation(dirty, server["writers"], target=16)

    def transactions():
        draw = random.Random(1)
        for _ in range(1_500):
            yield env.timeout("4 us")
            began = env.now
            page = draw.randrange(100_000)
            if background:
                yield from dirty.change(page)
            else:
                yield from dirty.change_and_evict(page, server["clients"], "pages.flush")
            latencies.append(env.now - began)

    env.run(env.process(transactions()))
    written = propagation.pages_written if background else int(server.facts()["pages.flushed"])
    return dirty, latencies, written


def test_background_writers_keep_the_dirty_pages_below_the_limit_and_off_the_critical_path():
    dirty, latencies, written = dirtying(background=True)
    assert dirty.stalls == 0
    assert max(latencies) == 0
    assert written >= 1_400
    assert len(dirty) <= 32


def test_without_background_writers_the_transaction_waits_for_the_write():
    dirty, latencies, written = dirtying(background=False)
    assert dirty.stalls > 1_400
    assert written >= 1_400
    assert sorted(latencies)[len(latencies) // 2] > 1 * des.US
    assert len(dirty) <= 32


def full_of_two_pages():
    """Dirty pages with no room left, what changes a page, and when it has changed which."""
    env = des.Environment()
    dirty = des.DirtyPages(env, limit=2)
    changed = []

    def change(page):
        yield from dirty.change(page)
        changed.append((env.now, page))

    for page in (1, 2):
        env.process(dirty.change(page))
    env.run()
    return env, dirty, change, changed


def test_who_waits_to_change_a_page_goes_on_when_another_one_has_changed_it():
    env, dirty, change, changed = full_of_two_pages()

    def writer():
        for page in (7, 7, 8):
            env.process(change(page))
        for _ in range(2):
            dirty.take()
            yield env.timeout(10)
            dirty.written()

    env.process(writer())
    env.run()
    # At 10 both changes of page 7 need one room; the next is that of page 8.
    assert changed == [(10, 7), (10, 7), (20, 8)]


def test_a_page_that_has_become_dirty_meanwhile_needs_no_room():
    env, dirty, change, changed = full_of_two_pages()

    def writer():
        env.process(change(7))
        dirty.take()
        yield env.timeout(10)
        dirty.written()
        yield from change(7)  # before who has waited for the room, and takes it

    env.process(writer())
    env.run()
    assert changed == [(10, 7), (10, 7)]


@given(
    limit=st.integers(1, 2),
    instants=st.lists(
        st.lists(st.sampled_from([0, 1, 2, "take", "written"]), min_size=1, max_size=2), max_size=30
    ),
)
def test_nobody_waits_for_room_while_there_is_some_or_the_page_is_dirty(limit, instants):
    env = des.Environment()
    dirty = des.DirtyPages(env, limit)
    model, waiting = [], []  # what is dirty, oldest first; who waits to change which page

    def change(page):
        waiting.append(page)
        yield from dirty.change(page)
        waiting.remove(page)
        if page not in model:
            model.append(page)

    taken = 0
    for steps in instants:
        for step in steps:
            if step == "take":
                page = dirty.take()
                assert page == (model.pop(0) if model else None)
                taken += page is not None
            elif step == "written":
                dirty.written()
                taken -= taken > 0
            else:
                env.process(change(step))
        env.run(env.now + 1)
        assert len(dirty) == len(model) + taken <= limit
        assert not set(waiting) & set(model)
        assert not waiting or len(dirty) == limit


def test_no_page_is_written_back_for_one_that_has_become_dirty_meanwhile():
    env = des.Environment()
    server = des.Server(env, [des.PagesPart(pages=16)], platform=PLATFORM, workers=2)
    dirty = des.DirtyPages(env, limit=1)
    changed = []

    def change(page):
        yield from dirty.change_and_evict(page, server.main, "pages.flush")
        changed.append(page)

    for page in (1, 7, 7, 7, 8):
        env.process(change(page))
    env.run()
    assert changed == [1, 7, 7, 7, 8]  # nobody waits for ever for what others need no more
    assert server.facts()["pages.flushed"] == 2


def test_a_checkpoint_writes_what_is_dirty_and_truncates_the_logs():
    env = des.Environment()
    server = des.Server(
        env,
        [des.LogPart(log_size="64 KiB"), des.PagesPart(pages=64)],
        platform=PLATFORM,
        workers={"one": 1, "two": 1, "writers": 1},
    )
    dirty = des.DirtyPages(env, limit=64)
    checkpoints = des.Checkpoints(
        env, period="100 us", dirty=dirty, writers=server["writers"], logs=[server["one"], server["two"]]
    )

    def transactions():
        for number in range(20):
            yield from dirty.change(number)
            yield server["one" if number % 2 else "two"].execute("log.append", number)

    env.process(transactions())
    env.run("90 us")
    assert len(server.present()) == 20
    assert len(dirty) == 20
    env.run("1 ms")
    assert len(checkpoints.taken) >= 2
    assert len(dirty) == 0
    assert server.present() == []


@pytest.mark.parametrize("writers", [1, 2, 8])
def test_writers_leave_the_target_alone_however_many_they_are(writers):
    """All had written a page each for one page too many, and slept until as many were dirty again."""
    env = des.Environment()
    server = des.Server(
        env, [des.PagesPart(pages=256)], platform=PLATFORM, workers={"writers": writers, "clients": 1}
    )
    dirty = des.DirtyPages(env, limit=64)
    propagation = des.PagePropagation(dirty, server["writers"], target=16)

    def transactions():
        for page in range(100):
            yield env.timeout("20 us")
            yield from dirty.change(page)

    env.run(env.process(transactions()))
    env.run(env.now + 1_000_000_000)
    assert len(dirty) == 16
    assert propagation.pages_written == 84


@pytest.mark.parametrize("busy", [False, True])
def test_a_checkpoint_waits_for_pages_that_others_are_writing(busy):
    """With `busy` transactions never stop: it does not wait for what becomes dirty meanwhile."""
    env = des.Environment()
    server = des.Server(
        env,
        [des.LogPart(log_size="64 KiB"), des.PagesPart(pages=64, page_size=16384)],
        platform=PLATFORM,
        workers={"writers": 2, "log": 1},
    )
    dirty = des.DirtyPages(env, limit=32)
    propagation = des.PagePropagation(dirty, server["writers"], target=0)
    checkpoints = des.Checkpoints(
        env, period="2 us", dirty=dirty, writers=server["writers"], logs=[server["log"]]
    )
    durable = []

    def transaction():
        yield env.timeout("1900 ns")
        yield from dirty.change(5)
        for page in itertools.count(6) if busy else ():
            yield env.timeout("1 us")
            yield from dirty.change(page)

    def watch():
        while not propagation.pages_written:
            yield env.timeout(1_000)
        durable.append(env.now)

    env.process(transaction())
    env.process(watch())
    env.run("200 us")
    began, ended = checkpoints.taken[0]
    assert began == 2 * des.US
    assert began < durable[0] - 1_000 <= ended
    assert ended < 50 * des.US


def test_checkpoints_go_on_after_a_power_failure():
    pages = des.PagesPart(pages=16, page_size=4096, dirty_lines=4)
    env = des.Environment()
    groups = {"clients": 1, "writers": 2}
    server = des.Server(
        env, [des.LogPart(log_size="64 KiB"), pages], platform=PLATFORM, workers=groups, crash=True
    )
    dirty = des.DirtyPages(env, limit=8)
    checkpoints = des.Checkpoints(
        env, period="10 us", dirty=dirty, writers=server["writers"], logs=[server["clients"]]
    )

    def transactions():
        for number in range(8):
            yield from dirty.change(number)

    env.process(transactions())
    env.run("10500 ns")
    assert server.busy == 2, "both writers are at it"
    server.power_failure(restart_after="1 us")
    assert len(dirty) == 0
    env.run("100 us")
    assert checkpoints.taken


@pytest.mark.parametrize("forget", [False, True])
@pytest.mark.parametrize("background", [False, True])
def test_the_buffer_is_never_fuller_than_it_can_be_after_a_power_failure(background, forget):
    """Pages that writers had taken counted for ever, or, forgotten after the recovery, less than nothing."""
    env = des.Environment()
    server = des.Server(env, [des.PagesPart(pages=64)], platform=PLATFORM, workers=2, crash=True)
    dirty = des.DirtyPages(env, limit=8)
    if background:
        des.PagePropagation(dirty, server.main, target=2)
    sizes = []

    def transactions():
        for number in itertools.count():
            yield env.timeout("200 ns")
            with suppress(des.PowerFailureError):
                if background:
                    yield from dirty.change(number % 60)
                else:
                    yield from dirty.change_and_evict(number % 60, server.main, "pages.flush")

    def fault():
        yield env.timeout("20 us")
        assert len(dirty) > 2
        ready = server.power_failure(restart_after="10 us")
        sizes.append(len(dirty))
        yield ready
        if forget:  # needless, and late
            dirty.forget()

    def watch():
        yield env.timeout("100 us")
        while True:
            yield env.timeout("50 ns")
            assert len(dirty._dirty) + server.busy + server.waiting <= 8
            sizes.append(len(dirty))

    for process in (transactions, fault, watch):
        env.process(process())
    env.run("500 us")
    assert sizes[0] == 0
    assert max(sizes) == 8
    assert min(sizes[1:]) > 2
