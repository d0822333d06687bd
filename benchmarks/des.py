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

PLATFORM = "ucsd-8260"
WORKERS, CLIENTS = 4, 8
REQUESTS = 50_000
ENGINES = ("nvm-direct", "fptree")
ROWS = 50_000


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


def run(env: simpy.Environment) -> float:
    begin = time.process_time()
    env.run()
    return REQUESTS / (time.process_time() - begin)


def native_load(part: des.Part, kind: str, arrivals: des.load.ArrivalsLike, workers: int, until: str) -> float:
    """Requests per second that the core draws and serves."""
    server = des.Server(des.Environment(), [part], platform=PLATFORM, workers=workers)
    load = des.NativeLoad(server, [des.Tenant("all", arrivals, [des.Ask(kind, first="uniform", below=ROWS)])])
    begin = time.process_time()
    load.run(until)
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
    for engine in ENGINES:
        part = des.EnginePart(engine=engine, rows=ROWS, row_size=8)
        models.append((f"{engine}: updates", part, "engine.update", 1, False))
        models.append((f"{engine}: reads", part, "engine.read", 1, False))
    for name, model, kind, workers, pool in models:
        rate = median(lambda m=model, k=kind, w=workers, p=pool: native_model(m, k, w, p))
        print(f"{name:48s} {rate / 1e3:8.0f} {rate / plain:6.2f}", flush=True)
    print("\nthousand requests per second that the core draws and serves itself")
    open_loop, closed = des.Poisson(200_000), des.ClosedPool(1)
    log = des.LogPart(entry_size=48)
    loads: list[tuple[str, des.Part, str, des.load.ArrivalsLike, int, str]] = [
        ("log appends, open loop, 1 worker", log, "log.append", open_loop, 1, "2 s"),
        ("log appends, 4 clients, 4 workers", log, "log.append", des.ClosedPool(4), 4, "40 ms"),
    ]
    for engine in ENGINES:
        part = des.EnginePart(engine=engine, rows=ROWS, row_size=8)
        loads.append((f"{engine}: updates, closed", part, "engine.update", closed, 1, "100 ms"))
        loads.append((f"{engine}: reads, closed", part, "engine.read", closed, 1, "100 ms"))
    for name, model, kind, arrivals, workers, until in loads:
        rate = median(lambda m=model, k=kind, a=arrivals, w=workers, u=until: native_load(m, k, a, w, u))
        print(f"{name:48s} {rate / 1e3:8.0f}", flush=True)


if __name__ == "__main__":
    main()
