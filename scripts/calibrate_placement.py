"""Fits the one cost of the placement study: the CPU time of a request.

    .venv/bin/python scripts/calibrate_placement.py

Imamura et al. (MinMove 2017) give no absolute throughput. The cost is solved for on one of their ratios: at
50 % replaces, the throughput with a synced log is 35 % of that without one. The script prints
`transaction_cycles` of the placement scenarios and claims, and writes nothing.
"""

import tomllib
from pathlib import Path
from typing import Any

import pmsim

WITH_LOG = 0.35  # sec. 5.3: "degrades to 35 %"
ROUNDS = 3
SCENARIO = Path(__file__).parent.parent / "scenarios" / "placement" / "by-writes.toml"


def microseconds(given: dict[str, Any], **parameters: Any) -> float:
    """Return the time of a request of the scenario at 50 % replaces [us]."""
    scenario = pmsim.Scenario(
        kind="oltp",
        platform=given["platform"],
        parameters=given["parameters"] | {"update_percent": 50} | parameters,
    )
    return 1e6 / float(pmsim.run(scenario, progress=False).frame["transactions_per_s"].iloc[0])


def main() -> None:
    """Solve for the cost, which is added to both times, a few times over."""
    given = tomllib.loads(SCENARIO.read_text(encoding="utf-8"))
    cycles_of_us = pmsim.load_platform("tarantool-sep").value("core", "frequency") / 1e6
    cycles = 3_000
    for _ in range(ROUNDS):
        without = microseconds(given, log_device="none", transaction_cycles=cycles)
        logged = microseconds(given, log_device="ssd", transaction_cycles=cycles)
        print(f"transaction_cycles {cycles}: {100 * without / logged:.1f} % with the log")
        cycles += round((WITH_LOG * logged - without) / (1 - WITH_LOG) * cycles_of_us)


if __name__ == "__main__":
    main()
