"""In memory mode "dram" and "pmem" both name main memory, so a region has the same results under both names."""

import pytest

import pmsim
from pmsim.kinds import find_kind
from pmsim.profiles import load_platform

MACHINE = load_platform("tum-6212u").with_values(
    {"controller": {"memory_mode": 1}, "tlb": {"page_size": 2**30, "dram_page_size": 2**12}}, source="a test"
)


@pytest.mark.parametrize(
    ("kind", "given"),
    {
        "bandwidth": ("bandwidth", {"threads": 2, "operation": "ntstore"}),
        "bandwidth, with a list": ("bandwidth", {"threads": 2, "address_list": True}),
        "persist": ("persist", {"threads": 2}),
        "latency": ("latency", {}),
    }.values(),
)
def test_both_names_of_main_memory_have_one_result(kind, given):
    rows = []
    for memory in ("dram", "pmem"):
        parameters = find_kind(kind).parameters(given | {"memory": memory, "region_size": "256 GiB"})
        columns = find_kind(kind).columns(MACHINE, parameters)
        rows.append(columns | {"memory": "any"} | find_kind(kind).run(MACHINE, parameters, 1))
    dram, pmem = rows
    assert list(map(str, pmem.items())) == list(map(str, dram.items()))  # a NaN is no NaN otherwise
    if "address_list" in given:
        assert dram["read_amplification"] > 0.5  # at the medium of main memory, of which DRAM holds a part
    if kind == "bandwidth":
        assert dram["page_size"] == 2**30


def test_a_list_of_addresses_is_in_main_memory_beside_the_region_under_both_names():
    full = MACHINE.value("pmem", "capacity")
    for memory in ("dram", "pmem"):
        parameters = find_kind("bandwidth").parameters(
            {"memory": memory, "region_size": full, "address_list": True}
        )
        with pytest.raises(pmsim.ConfigError, match=r"address_list: .* do not fit"):
            find_kind("bandwidth").check(MACHINE, parameters)
