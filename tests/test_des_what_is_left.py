"""What a server may be asked to recover from, and where its log is when it does not say."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pmsim
from pmsim import des
from pmsim.cli import app
from pmsim.errors import ConfigError
from pmsim.kinds import find_kind
from pmsim.profiles import load_platform

ROOT = Path(__file__).parents[1]
OVER_SSD = {"base": "tum-6212u", "block_device": "optane-p4800x"}
SIZES = {
    "rows": 1_000,
    "row_size": 1000,
    "dram_capacity": "4 MiB",
    "pmem_capacity": "4 MiB",
    "ssd_capacity": "8 MiB",
    "log_size": "4 MiB",
}
PMEM_ALONE = {"pmem_capacity": "16 MiB", "ssd_capacity": 0}
DRAM_ALONE = {"pmem_capacity": 0, "ssd_capacity": "8 MiB"}


def engine(name, **given):
    return des.EnginePart(engine=name, **SIZES | given)


def server_of(*parts, platform=OVER_SSD, crash=True, **options):
    return des.Server(des.Environment(), parts, platform=platform, crash=crash, **options)


def log_of(server):
    """Return where a server's engine has its log, and how it commits."""
    ((_, given),) = server._made_of[0]
    return given["log_device"], given["commits"]


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        (des.LogPart(), "the log"),
        (des.PagesPart(), "the copies of pages"),
        (engine("nvm-direct", **PMEM_ALONE), "nvm-direct, its pages and logs"),
        (engine("three-tier"), "three-tier, its pages"),
        (engine("main-memory", ssd_capacity=0), "main-memory, its checkpoints"),
    ],
)
def test_nothing_recovers_from_a_volatile_expander(part, kept):
    machine = {"base": "spr-cxl", "block_device": "nvme-p4510"}
    server_of(part, platform=machine, crash=False)
    with pytest.raises(ConfigError, match=rf"^parts\.{part.name}: pmem of .* is volatile, .*\({kept}\)"):
        server_of(part, platform=machine)
    durable = machine | {"pmem_persistence": "durable"}
    assert server_of(part, platform=durable).workers == 1


@pytest.mark.parametrize(
    ("part", "kept"),
    [(des.LogPart(), "the log"), (engine("ssd-bm"), "ssd-bm, its log"), (des.BlockLogPart(), "")],
)
def test_in_memory_mode_no_memory_keeps_anything(part, kept):
    machine = OVER_SSD | {"controller": {"memory_mode": True}}
    if not kept:
        assert server_of(part, platform=machine).workers == 1
        return
    with pytest.raises(ConfigError, match=rf"volatile, .*\({kept}\); .* controller\.memory_mode = false$"):
        server_of(part, platform=machine)


@pytest.mark.parametrize(
    "part",
    [des.TablePart(rows=100), des.BlockLogPart(), engine("ssd-bm", **DRAM_ALONE), des.LogPart(memory="dram")],
)
def test_what_keeps_nothing_on_a_volatile_expander_may_lose_its_power(part):
    server = server_of(part, platform={"base": "spr-cxl", "block_device": "nvme-p4510"})
    assert server.env.run(server.power_failure(restart_after="1 ms")).ready >= des.MS


@pytest.mark.parametrize("lost", ["pmem", "block"])
@pytest.mark.parametrize(
    ("part", "needs"),
    [
        (engine("three-tier"), {"pmem", "block"}),
        (engine("spitfire"), {"pmem", "block"}),
        (engine("three-tier", log_device="ssd"), {"pmem", "block"}),
        (engine("ssd-bm"), {"pmem", "block"}),  # its log
        (engine("ssd-bm", log_device="ssd"), {"block"}),
        (engine("basic-nvm-bm", **PMEM_ALONE), {"pmem"}),
        (engine("main-memory", dram_capacity="16 MiB", ssd_capacity=0), {"pmem"}),
        (engine("nvm-direct", **PMEM_ALONE), {"pmem"}),
    ],
)
def test_an_engine_does_not_go_on_without_a_tier_that_it_needs(part, needs, lost):
    server = server_of(part)
    if lost not in needs:
        assert server.env.run(server.power_failure(lost=lost)).ready > 0
        assert len(server.present()) == part.rows
        return
    with pytest.raises(ConfigError, match=r"^lost: part 'engine' keeps data there"):
        server.power_failure(lost=lost)
    server.env.run(server.power_failure())  # nothing has happened to it
    assert len(server.present()) == part.rows


def test_an_engine_beside_a_log_needs_what_is_its_own():
    server = server_of(des.LogPart(), engine("ssd-bm", log_device="ssd"))
    server.env.run(server.power_failure(lost="pmem"))
    with pytest.raises(ConfigError, match=r"^lost: part 'engine'"):
        server.power_failure(lost="block")


@pytest.mark.parametrize(
    ("part", "platform", "workers", "place"),
    [
        (engine("ssd-bm"), OVER_SSD, 1, ("pmem", "single")),
        (engine("ssd-bm", pmem_capacity=0), OVER_SSD, 1, ("ssd", "single")),
        (engine("ssd-bm", pmem_capacity=0), OVER_SSD, 2, ("ssd", "group")),
        (engine("ssd-bm", pmem_capacity=0, commits="single"), OVER_SSD, 2, ("ssd", "single")),
        (engine("ssd-bm", pmem_capacity=0, log_device="pmem"), OVER_SSD, 2, ("pmem", "single")),
        (engine("three-tier"), {"base": "spr-cxl", "block_device": "nvme-p4510"}, 1, ("ssd", "single")),
        (engine("nvm-direct", **PMEM_ALONE), "spr-cxl", 1, ("pmem", "single")),  # its undo logs
    ],
)
def test_the_log_of_an_engine_is_where_the_kinds_put_it(part, platform, workers, place):
    assert log_of(server_of(part, platform=platform, workers=workers, crash=False)) == place
    kind = find_kind("system")
    given = {"study": "load", "service": "engine", "workers": workers} | {
        name: getattr(part, name) for name in ("engine", "rows", "pmem_capacity", "log_device", "commits")
    }
    settled = kind.settled(load_platform(platform), kind.parameters(given))
    assert (settled.log_device, settled.commits) == place


def test_a_log_has_no_place_on_a_device_that_is_not_there():
    with pytest.raises(
        ConfigError, match=r"^parts\.engine: log_device: platform 'tum-6212u' has no block device"
    ):
        server_of(engine("main-memory", pmem_capacity=0, ssd_capacity=0), platform="tum-6212u")
    with pytest.raises(
        ConfigError, match=r"^parts\.engine: log_device: pmem of platform 'spr-cxl' is volatile"
    ):
        server_of(engine("ssd-bm", log_device="pmem"), platform="spr-cxl", crash=False)


@pytest.mark.parametrize(
    "part",
    [
        engine("three-tier"),
        engine("ssd-bm", **DRAM_ALONE),
        engine("nvm-direct", **PMEM_ALONE),
        engine("main-memory", dram_capacity="16 MiB", ssd_capacity=0),
    ],
)
def test_what_a_warm_up_has_stored_survives_a_power_failure(part):
    server = server_of(part, workers=2)
    des.warm_up(server, [des.Ask("engine.update", 1, first="sequence")], 2_500)
    env = server.env
    found = []

    def client():
        done = yield server.execute("engine.update", 5)
        found.append(done)
        yield server.power_failure()

    env.run(env.process(client()))
    # Each row begins with 1 + the number of the request that wrote it last; the timed one begins to count anew.
    latest = [1 + max(range(key, 2_500, part.rows)) for key in range(part.rows)]
    latest[5] = 1 + found[0].request
    assert server.present() == latest


def test_a_server_of_study_restart_may_have_run_for_long():
    given = {"study": "restart", "service": "engine", "engine": "ssd-bm", "log_device": "ssd", "rate": 4_000}
    given |= {"rows": 20_000, "zipf": 0.9, "update_percent": 20, "workers": 2, "windows": 6}
    given |= {"dram_capacity": "8 MiB", "pmem_capacity": 0, "ssd_capacity": "64 MiB"}
    given |= {"duration": "60 ms", "crash_at": "50 ms", "restart_after": "20 ms"}
    cold, warm = (pmsim.simulate_point("system", OVER_SSD, given | {"warmup": n}) for n in (0, 20_000))
    # Before the failure one finds most rows in DRAM, and the other's DRAM fills.
    assert warm["latency_ns"] < 0.8 * cold["latency_ns"]


def test_the_documentation_says_which_counters_a_server_does_not_have():
    server = server_of(des.TablePart(rows=1_000), crash=False)
    of_results = {name.removeprefix("counter.") for name in find_kind("bandwidth").counters()}
    missing = of_results - set(server.counters())
    said = (ROOT / "docs" / "des.md").read_text().split("`server.counters()`")[1].split("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", said)) == missing
    listed = CliRunner().invoke(app, ["list", "counters"]).output
    assert f"not of a pmsim.des.Server: {', '.join(f'counter.{name}' for name in sorted(missing))}" in listed
