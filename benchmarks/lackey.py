"""Programs on this machine, and the bounds that their lackey traces give on its profile (docs/traces.md).

    pmsim calibrate --out this-machine.toml
    .venv/bin/python benchmarks/lackey.py --platform this-machine.toml

Wants valgrind and a C compiler.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from pmsim import trace

SOURCE = Path(__file__).with_name("lackey_program.c")
PROGRAMS = ("chase", "scan", "gather", "search")
RUNS = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", required=True, help="the profile of this machine")
    parser.add_argument("--mib", type=int, default=64, help="memory of a program [MiB]")
    parser.add_argument("--steps", type=int, default=100_000)
    given = parser.parse_args()
    # The programs ask for huge pages; the profile has those of its own microbenchmarks.
    machine = {"base": given.platform, "tlb": {"dram_page_size": "2 MiB"}}
    print(f"{'ns a step':10}{'this machine':>16}{'independent':>14}{'dependent':>12}")
    with tempfile.TemporaryDirectory() as folder:
        program, log, file = (Path(folder) / name for name in ("program", "log", "trace"))
        subprocess.run(["cc", "-O2", "-no-pie", SOURCE, "-o", program], check=True)
        names = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
        mark = int(re.search(r"(\w+) B pmsim_mark", names)[1], 16)
        for name in PROGRAMS:
            command = [program, name, str(given.mib), str(given.steps)]
            runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(RUNS)]
            measured = sorted(float(run.stdout.split()[0]) for run in runs)
            lackey = ["valgrind", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no", f"--log-file={log}"]
            subprocess.run([*lackey, *command], check=True, capture_output=True)
            bounds = []
            for loads in ("independent", "dependent"):
                trace.import_from(log, file, loads=loads, mark=mark)
                bounds.append(trace.replay(file, machine).total.elapsed_ps / given.steps / 1000)
            real = f"{measured[0]:.1f} to {measured[-1]:.1f}"
            print(f"{name:10}{real:>16}{bounds[0]:14.1f}{bounds[1]:12.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
