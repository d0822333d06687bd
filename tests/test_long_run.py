"""Runs of hours, segment by segment: they resume, and take no more memory as they go on."""

import gc
import os
import signal
import subprocess
import sys
import weakref
from contextlib import suppress

import numpy as np
import pytest

from pmsim import des
from pmsim.cli import main
from pmsim.errors import ConfigError
from pmsim.time_stack import CAUSES, IDLE

PLATFORM = "ucsd-8260"
SEGMENT = 2 * des.MS


TENANTS = [
    des.Tenant("a", des.Bursty(4e6, "30 us", "60 us"), [des.Ask("log.append")], "1 ms"),
    des.Tenant("b", des.ClosedPool(2, "5 us"), [des.Ask("log.append")], "1 ms"),
]


def small_server(segment, workers=2):
    return des.Server(
        des.Environment(),
        [des.LogPart(log_size="64 KiB")],
        platform=PLATFORM,
        workers=workers,
        seed=segment + 1,
    )


def long_run(state, until):
    run = des.LongRun(small_server, TENANTS, segment=SEGMENT, state=state, seed=3)
    run.run(until)
    return run


def test_an_interrupted_long_run_ends_as_one_that_was_not(tmp_path):
    whole = long_run(None, 8 * SEGMENT)
    state = tmp_path / "run.state"
    for segments in (3, 4, 8):
        resumed = long_run(state, segments * SEGMENT)
    for tenant in ("a", "b"):
        assert resumed.load.summary(tenant) == whole.load.summary(tenant)
        assert resumed.load.windows(tenant).equals(whole.load.windows(tenant))
    assert resumed.counters() == whole.counters()
    assert whole.load.summary("a")["count"] > 10_000
    assert resumed.segments == 8


def test_workers_of_a_long_run_have_the_time_of_the_run_and_no_more():
    run = long_run(None, 8 * SEGMENT)
    counted = run.counters()
    assert sum(counted[name] for name in CAUSES.values()) == pytest.approx(2 * run.now, rel=0.001)
    assert 0 < counted[CAUSES[IDLE]] < 2 * run.now


def test_a_state_of_another_recording_is_refused(tmp_path):
    def replayed(times):
        tenant = des.Tenant("all", des.TraceDriven(times), [des.Ask("log.append")], "1 ms")
        run = des.LongRun(small_server, [tenant], segment=SEGMENT, state=tmp_path / "run.state", seed=3)
        run.run(SEGMENT)

    times = np.arange(2_000) * 10**6
    replayed(times)
    times[1_000] += 1  # in the part that the text of an array leaves out
    with pytest.raises(ConfigError, match="belongs to another run or build"):
        replayed(times)


HOURS = """
kind = "system"
name = "hours"
platform = "ucsd-8260"
[parameters]
study = "long-run"
service = "log"
workers = 2
log_size = "64 KiB"
rate = 200_000
duration = "2 s"
segment = "50 ms"
windows = 20
"""


def test_ctrl_c_in_a_long_run_loses_a_segment_and_the_same_command_ends_with_the_same_bytes(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hours.toml").write_text(HOURS)
    # A background job of a shell ignores Ctrl-C, and its children inherit that; a user at a terminal does not.
    source = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from pmsim.cli import main; sys.exit(main(['run', 'hours.toml', '--out', 'stopped']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", source], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    points = tmp_path / "stopped" / "points"
    while process.poll() is None and not list(points.glob("*.state")):
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
    os.killpg(process.pid, signal.SIGINT)  # the terminal sends it to every process
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "0 of 1 points are kept in stopped, and what 1 more had done; run the same command" in errors
    (state,) = points.iterdir()
    ends = []
    drain = des.NativeLoad.drain

    def counted(load):
        ends.append(load.now)
        return drain(load)

    monkeypatch.setattr(des.NativeLoad, "drain", counted)
    assert main(["run", "hours.toml", "--out", "stopped"]) == 0
    assert 0 < len(ends) < 40, "it has begun anew"
    assert not state.exists()
    assert main(["run", "hours.toml", "--out", "whole"]) == 0
    capsys.readouterr()
    whole = tmp_path / "whole" / "points"
    (done,) = points.iterdir()
    assert done.read_bytes() == (whole / done.name).read_bytes()
    stopped, uninterrupted = (
        (tmp_path / folder / "results.parquet").read_bytes() for folder in ("stopped", "whole")
    )
    assert stopped == uninterrupted


def test_a_long_run_keeps_one_machine_in_memory():
    """A server and its environment know each other; only the collector would free them, some time."""
    sessions = []

    def server(segment):
        made = small_server(segment)
        sessions.append(weakref.ref(made.session))
        return made

    run = des.LongRun(server, TENANTS, segment=SEGMENT)
    gc.collect()
    gc.disable()
    try:
        run.run(4 * SEGMENT)
    finally:
        gc.enable()
    assert [session() is not None for session in sessions] == [False] * 4 + [True]


def test_the_state_of_a_long_run_does_not_grow():
    """A hundred times the requests leave as many bytes, but for those who wait at the end."""
    sizes = []
    for length in (10, 1_000):
        load = des.NativeLoad(
            des.Server(des.Environment(), [des.LogPart(log_size="64 KiB")], platform=PLATFORM, workers=2),
            [des.Tenant("a", des.Poisson(200_000), [des.Ask("log.append")], f"{length * des.MS // 400} ps")],
        )
        load.run(length * des.MS)
        sizes.append(len(load.drain()))
    assert load.summary()["count"] > 190_000
    assert sizes[1] == pytest.approx(sizes[0], abs=1_000)


def test_the_state_of_another_run_and_a_damaged_one_are_refused(tmp_path):
    state = tmp_path / "run.state"
    long_run(state, SEGMENT)
    data = state.read_bytes()
    state.write_bytes(data[:-1])
    with pytest.raises(ConfigError, match="damaged"):
        long_run(state, SEGMENT)
    with pytest.raises(ConfigError, match=r"cannot be read: .*; delete it"):
        long_run(tmp_path, SEGMENT)
    state.write_bytes(data)
    other = [des.Tenant("a", des.Poisson(5), [des.Ask("log.append")])]
    with pytest.raises(ConfigError, match="another run"):
        des.LongRun(small_server, other, segment=SEGMENT, state=state)
    with pytest.raises(ConfigError, match="another run"):  # on another machine
        des.LongRun(
            lambda segment: small_server(segment, workers=3), TENANTS, segment=SEGMENT, state=state, seed=3
        )
    with pytest.raises(ConfigError, match="end of a segment"):
        long_run(state, SEGMENT + 1)
