"""What shrinks with ``scale``: data, capacities, and what of the machine decides by its size what is found."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pmsim.kinds.engine_options import EngineParameters, scaled_machine
from pmsim.profiles import load_platform

FULL = EngineParameters.model_validate({"scale": 1})
SMALL = EngineParameters.model_validate({"scale": "1/16"})


def test_data_capacities_and_transactions_shrink_together() -> None:
    for name in ("data_size", "dram_capacity", "pmem_capacity", "ssd_capacity", "log_size"):
        assert SMALL.native()[name] == int(FULL.native()[name]) // 16
    for entries, at_scale in ((0, 0), (3, 1), (1600, 100)):
        model = EngineParameters.model_validate({"scale": "1/16", "admission_entries": entries})
        assert model.native()["admission_entries"] == at_scale
    assert SMALL.simulated_operations == FULL.simulated_operations // 16


def test_caches_and_the_reach_of_translations_shrink() -> None:
    machine = load_platform("tum-6212u")
    assert scaled_machine(machine, FULL) == machine
    shrunk = scaled_machine(machine, SMALL)
    for section, size in (("l2", "size"), ("llc", "size"), ("pmem", "translation_entries")):
        assert shrunk.value(section, size) == machine.value(section, size) // 16
    kept = EngineParameters.model_validate({"scale": "1/16", "scale_caches": False})
    assert scaled_machine(machine, kept) == machine


def test_what_cannot_shrink_stays() -> None:
    machine = load_platform("sep-e5-4620v2")
    shrunk = scaled_machine(machine, SMALL)
    # An L2 of 16 KiB below an L1 of 32 KiB would be no cache.
    assert shrunk.value("l2", "size") == machine.value("l1", "size")
    assert shrunk.value("pmem", "translation_entries") == 1  # its modules, emulated by DRAM, translate nothing


@pytest.mark.parametrize("tier", ["dram", "pmem", "ssd"])
def test_a_tier_of_less_than_a_page_is_refused(
    tier: str, complaint: Callable[..., str], tmp_path: Path
) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(
        'kind = "oltp"\nplatform = {base = "tum-6212u", block_device = "nvme-p4510"}\n'
        f'[parameters]\nengine = "three-tier"\n{tier}_capacity = "200 KiB"\n'
    )
    told = (
        f"{tier}_capacity: 200 KiB at scale 1/16 are less than a page of 16 KiB; choose 0, or at least 256 KiB"
    )
    assert told in complaint("run", str(scenario))
