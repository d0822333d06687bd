"""Speed of pmsim.des, in CPU time of this process.

The same SimPy model twice: a closed pool asks for one of some workers, for a constant time or for a request
of a native server. Then loads that the core draws and serves itself.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import simpy

from pmsim import des

PLATFORM = {"base": "ucsd-8260", "block_device": "nvme-p4510"}
WORKERS, CLIENTS = 4, 8
REQUESTS = 50_000
ROWS = 50_000
#: Everything is in DRAM or, for nvm-direct and the leaves of fptree, in PMem.
ENGINES = {
    "nvm-direct": {},
    "fptree": {"row_size": 8},
    "main-memory": {},
    "basic-nvm-bm": {},
    "ssd-bm": {"pmem_capacity": 0, "ssd_capacity": 2**26},
    "three-tier": {"ssd_capacity": 2**26},
    "spitfire": {"ssd_capacity": 2**26},
}
#: 5 MB of rows in 2 MiB of DRAM; of three tiers 4 MiB are in PMem.
BUFFERED = {
    "basic-nvm-bm": {"pmem_capacity": 2**24},
    "three-tier": {"pmem_capacity": 2**22, "ssd_capacity": 2**25},
    "spitfire": {"pmem_capacity": 2**22, "ssd_capacity": 2**25},
    "ssd-bm": {"pmem_capacity": 0, "ssd_capacity": 2**25},
}


def plain_model() -> float:
    """Requests per second of the model with a constant."""
    env = simpy.Environment()
    pool = simpy.Resource(env, capacity=WORKERS)

    def client():
        for _ in range(REQUESTS // CLIENTS):
            with pool.request() as worker:
                yield worker
                yield env.timeout(300_000)

    for _ in range(CLIENTS):
        env.process(client())
    return run(env)


def native_model(part: des.Part, kind: str, workers: int, pool: bool) -> float:
    """Requests per second of the model with a server; with a SimPy resource as its pool, or its own queue."""
    env = des.Environment()
    resource = simpy.Resource(env, capacity=workers) if pool else None
    server = des.Server(env, [part], platform=PLATFORM, workers=workers, pool=resource)
    number = server.kind(kind)

    def client(first):
        for request in range(REQUESTS // CLIENTS):
            yield server.execute(number, first + CLIENTS * request)

    for first in range(CLIENTS):
        env.process(client(first))
    return run(env)


def engine_part(engine: str, **parameters: int) -> des.EnginePart:
    given = {"rows": ROWS, "row_size": 64, "dram_capacity": 2**26, "pmem_capacity": 2**26}
    return des.EnginePart.model_validate({"engine": engine} | given | parameters)


def run(env: simpy.Environment) -> float:
    begin = time.process_time()
    env.run()
    return REQUESTS / (time.process_time() - begin)


def native_load(part: des.Part, kind: str, arrivals: des.load.ArrivalsLike, workers: int, until: str) -> float:
    """Requests per second that the core draws and serves, after as long a warm-up."""
    server = des.Server(des.Environment(), [part], platform=PLATFORM, workers=workers)
    load = des.NativeLoad(server, [des.Tenant("all", arrivals, [des.Ask(kind, first="uniform", below=ROWS)])])
    length = des.picoseconds(until)
    load.run(length)
    load.restart_statistics()
    begin = time.process_time()
    load.run(2 * length)
    return load.summary()["count"] / (time.process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of which the median counts (default 5)")
    runs = parser.parse_args().runs

    def median(measure: Callable[[], float]) -> float:
        return statistics.median(measure() for _ in range(runs))

    plain = median(plain_model)
    print("thousand requests per second of a SimPy model, and over that of the first line")
    print(f"{'resource and timeout':48s} {plain / 1e3:8.0f}")
    models: list[tuple[str, des.Part, str, int, bool]] = [
        ("log appends", des.LogPart(), "log.append", WORKERS, False),
        ("log appends, waiting in a simpy.Resource", des.LogPart(), "log.append", WORKERS, True),
    ]
    for engine in ("nvm-direct", "fptree", "three-tier"):
        part = engine_part(engine, **ENGINES[engine])
        models.append((f"{engine}: updates", part, "engine.update", 1, False))
        models.append((f"{engine}: reads", part, "engine.read", 1, False))
    for name, model, kind, workers, pool in models:
        rate = median(lambda m=model, k=kind, w=workers, p=pool: native_model(m, k, w, p))
        print(f"{name:48s} {rate / 1e3:8.0f} {rate / plain:6.2f}", flush=True)
    print("\nthousand requests per second that the core draws and serves itself")
    open_loop, closed = des.Poisson(200_000), des.ClosedPool(1)
    log = des.LogPart(entry_size=48)
    loads: list[tuple[str, des.Part, str, des.load.ArrivalsLike, int, str]] = [
        ("log appends, open loop, 1 worker", log, "log.append", open_loop, 1, "1 s"),
        ("log appends, 4 clients, 4 workers", log, "log.append", des.ClosedPool(4), 4, "80 ms"),
    ]
    for engine, parameters in ENGINES.items():
        part = engine_part(engine, **parameters)
        loads.append((f"{engine}: updates", part, "engine.update", closed, 1, "50 ms"))
        loads.append((f"{engine}: reads", part, "engine.read", closed, 1, "50 ms"))
    for engine, parameters in BUFFERED.items():
        length = "50 ms" if engine == "basic-nvm-bm" else "400 ms"
        part = engine_part(engine, dram_capacity=2**21, **parameters)
        loads.append((f"{engine}, little DRAM: updates", part, "engine.update", closed, 1, length))
        loads.append((f"{engine}, little DRAM: reads", part, "engine.read", closed, 1, length))
    for name, model, kind, arrivals, workers, until in loads:
        rate = median(lambda m=model, k=kind, a=arrivals, w=workers, u=until: native_load(m, k, a, w, u))
        print(f"{name:48s} {rate / 1e3:8.0f}", flush=True)


if __name__ == "__main__":
    main()
