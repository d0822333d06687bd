"""Fits the two costs of the placement study: the CPU time of a request and the time of a call to its log.

    .venv/bin/python scripts/calibrate_placement.py

Imamura et al. (MinMove 2017) give no absolute throughput. Two of their ratios at 50 % replaces are solved for
the two costs: the throughput with a synced log is 35 % of that without one, and data on memory of twice the
latency gain 1.38 over that log. The script prints the values of `transaction_cycles` (placement scenarios and
claims) and of `software_latency` (pmsim/data/platforms/cached-log.toml), and writes nothing.
"""

import tomllib
from pathlib import Path
from typing import Any

import pmsim

WITH_LOG = 0.35  # sec. 5.3: "degrades to 35 %"
GAIN_2X = 1.38  # abstract, sec. 5.3
WRITES = 0.5
CALLS = 2  # a write and a sync for each replace
ROUNDS = 3
SCENARIO = Path(__file__).parent.parent / "scenarios" / "placement" / "by-writes.toml"
TWICE = {"base": "tarantool-sep", "pmem": {"media_read_latency": "120 ns", "write_latency": "85 ns"}}


def microseconds(platform: dict[str, Any], **parameters: Any) -> float:
    """Return the time of a request of the scenario at 50 % replaces [us]."""
    given = tomllib.loads(SCENARIO.read_text(encoding="utf-8"))["parameters"]
    scenario = pmsim.Scenario(
        kind="oltp", platform=platform, parameters=given | {"update_percent": 50} | parameters
    )
    return 1e6 / float(pmsim.run(scenario, progress=False).frame["transactions_per_s"].iloc[0])


def main() -> None:
    """Solve for both costs, which change nothing but the terms that they stand for, a few times over."""
    machine = pmsim.load_platform("tarantool-sep")
    cycles_of_us = machine.value("core", "frequency") / 1e6
    cycles, call_ns = 3_000, 2_000
    for _ in range(ROUNDS):
        log = {
            "base": "tarantool-sep",
            "block_device": "cached-log",
            "block": {"software_latency": f"{call_ns} ns"},
        }
        request = cycles / cycles_of_us
        without = microseconds(log, log_device="none", transaction_cycles=cycles)
        logged = microseconds(log, log_device="ssd", transaction_cycles=cycles)
        twice = microseconds(TWICE, engine="nvm-undo", transaction_cycles=cycles)
        print(
            f"transaction_cycles {cycles}, software_latency {call_ns} ns: {100 * without / logged:.1f} % with "
            f"the log, gain {logged / twice:.3f} with the data on PM of twice the latency"
        )
        # without / logged = WITH_LOG and logged / twice = GAIN_2X, where both times have the request in them.
        ratio = 1 / (WITH_LOG * GAIN_2X)
        wanted = ((twice - request) - ratio * (without - request)) / (ratio - 1)
        missing = (without - request + wanted) / WITH_LOG - (logged - request + wanted)
        call_ns = round(call_ns + 1000 * missing / (WRITES * CALLS))
        cycles = round(wanted * cycles_of_us)


if __name__ == "__main__":
    main()
