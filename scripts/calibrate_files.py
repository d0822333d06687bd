"""Fits the one cost of the study of files: the CPU time that a query spends on a row.

    .venv/bin/python scripts/calibrate_files.py

Mustafa et al. (SAMOS 2016) give shares of time, no absolute ones. Of unmodified PostgreSQL on PMFS "around
10 %" of the time is the kernel's on average, and 20 % of Q11's; 2.6 % are left when nothing is fetched through
it. The cost is solved for on the differences, the part of the time in which pages are read. The script prints
`row_cycles` of scenarios and claims for either, and writes nothing.
"""

import tomllib
from pathlib import Path

import pmsim

LEFT = 2.6  # sec. I, per cent: kernel time of the modified storage engines
SHARES = {"average of the queries": 10 - LEFT, "Q11": 20 - LEFT}  # sec. VI.A
ROUNDS = 4
SCENARIO = Path(__file__).parent.parent / "scenarios" / "files" / "by-cpu.toml"


def main() -> None:
    """Solve for the cost of either share: what is no fetching takes time in proportion to it."""
    given = tomllib.loads(SCENARIO.read_text(encoding="utf-8"))
    cycles_of_ns = pmsim.load_platform(given["platform"]).value("core", "frequency") / 1e9
    for query, share in SHARES.items():
        cycles = 500
        for _ in range(ROUNDS):
            parameters = given["parameters"] | {"row_cycles": cycles}
            scenario = pmsim.Scenario(kind="oltp", platform=given["platform"], parameters=parameters)
            row = pmsim.run(scenario, progress=False).frame.iloc[0]
            time = 1e9 / float(row["transactions_per_s"]) / given["parameters"]["scan_length"]
            fetching = time * float(row["pages_time_share"])
            found = 100 * fetching / time
            print(f"{query}: row_cycles {cycles}: {found:.2f} % (wanted {share:.1f}), {time:.0f} ns a row")
            cycles += round((fetching * 100 / share - time) * cycles_of_ns)


if __name__ == "__main__":
    main()
