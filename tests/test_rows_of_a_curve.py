"""Points whose rows are a curve: the order of the rows."""

import pmsim


def wear(**given: object) -> pmsim.Result:
    parameters = {"rows": "wear", "engine": "nvm-direct", "workload": "ycsb-a", "data_size": "64 MiB"}
    parameters |= {"scale": 1, "pmem_capacity": "256 MiB", "operations": 2_000, "warmup": 1} | given
    return pmsim.run(
        pmsim.Scenario(kind="oltp", platform="sep-e5-4620v2", parameters=parameters), progress=False
    )


def test_rows_of_wear_are_in_the_order_of_their_ranks() -> None:
    frame = wear().frame
    assert list(frame.wear_rank[:7]) == [1, 2, 5, 10, 20, 50, 100]
    assert frame.wear_rank.is_monotonic_increasing
    assert frame.wear_rank_writes.is_monotonic_decreasing
    assert frame.wear_rank_writes.iloc[0] == frame.wear_maximum.iloc[0]
