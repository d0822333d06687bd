"""Values beyond what the core accepts: one line with the parameter, before anything runs."""

from collections.abc import Callable
from pathlib import Path

import pytest


def of_kind(kind: str, line: str) -> str:
    platform = '{base = "tum-6212u", block_device = "nvme-p4510"}'
    return f'kind = "{kind}"\nplatform = {platform}\n[parameters]\n{line}\n'


#: Of each kind: values beyond what the core accepts, and the line that says so. They are
#: refused before anything runs; a point that fails would have exit status 1.
BEYOND = {
    "log": {
        "group_commit = 1048577": "group_commit: 1048577 is too large; choose at most 1048576",
        "dancing_fields = 4097": "dancing_fields: 4097 is too large; choose at most 4096",
        "log_size = 128": "log_size: 128 B is too small; choose at least 256 B",
        "cpu_cycles = 1000001": "cpu_cycles: 1000001 is too large; choose at most 1000000",
    },
    "persist": {'access_size = "4 GiB"': "access_size: 4 GiB is too large; choose at most 1 GiB"},
    "node": {"node_size = 64": "node_size: such a node has no room for two pairs"},
    "operations": {"region_size = 64": "region_size: 64 B is too small; choose at least 4 KiB"},
    "mixed": {"region_size = 65536": "region_size: 64 KiB is too small; choose at least 1 MiB"},
    "page-flush": {
        "spare_slots = 1048577": "spare_slots: 1048577 is too large; choose at most 1048576",
        "pages = 16777217": "pages: 16777217 is too large; choose at most 16777216",
    },
    "oltp": {
        "cpu_cycles = 1000001": "cpu_cycles: 1000001 is too large; choose at most 1000000",
        "transaction_cycles = 1000001": "transaction_cycles: 1000001 is too large; choose at most 1000000",
        "admission_entries = 4294967296": "admission_entries: 4294967296 is too large; choose at most",
        "operations = 1099511627777": "operations: 1099511627777 is too many; choose 1 to 1099511627776",
        'operations = "many"': "operations: 'many' is text, not a count; write a whole number such as 4, "
        "without quotes, or write 'auto'",
        'scan_length = "all"': "scan_length: 'all' is text, not a count; write a whole number such as 4, "
        "without quotes, or write 'table'",
        "operations = 0": "operations: 0 is too few; choose 1 to 1099511627776, or write 'auto'",
        "warmup = 1099511627777": "warmup: 1099511627777 is too many; choose 0 to",
        'workload = "tpcc"\nwarehouses = 1048576': "warehouses: 1048576 are too many; choose at most 1048560",
        "cache_line_grained = false": "mini_pages: they hold a part of the lines of a page; choose false",
        'page_size = "64 KiB"': "mini_pages: pages of 65536 B have too many lines for them; choose false",
        'data_size = "511 KiB"': "data_size: 511 KiB at scale 1/16 are less than two pages; choose 512 KiB or",
        'engine = "fptree"': "workload: ycsb-ro; fptree holds rows with a key and a payload of 8 B only",
        'scale = "1e-999999999"': "scale: '1e-999999999' is not a scale; write \"1/16\"",
    },
    "restart": {"windows = 65537": "windows: 65537 is too large; choose at most 65536"},
    "system": {
        "rate = 1000000000001": "rate: 1000000000001 is too large; choose at most",
        "log_size = 512": "log_size: 512 B is too small; choose at least 4 KiB",
        'service = "block-log"\nlog_size = 128': "log_size: 128 B is too small; choose at least 4 KiB",
        "group_size = 65537": "group_size: 65537 is too large; choose at most 65536",
        "scanners = 1000000000": "scanners: 1000000000 is too large; choose at most",
        'engine = "fptre"': "engine: 'fptre' is not one of",
        'service = "engine"\nengine = "fptree"': "row_size: 256 B; rows of fptree have 8 B, choose",
        'service = "engine"\nrow_size = 8192': "row_size: 8192 B; choose a multiple of 8 B up to 4 KiB",
        'service = "engine"\nrow_size = 100': "row_size: 100 B; choose a multiple of 8 B up to 4 KiB",
        'service = "table"\nrow_size = "1 MiB"': "row_size: 1048576 B; choose a multiple of 64 B up to 64 KiB",
        'service = "table"\nrow_size = 100': "row_size: 100 B; choose a multiple of 64 B up to 64 KiB",
        'service = "table"\nrow_size = 104': "row_size: 104 B; choose a multiple of 64 B up to 64 KiB",
        'service = "log"\nrequests = 1': "requests: 1 is too small; choose at least 20",
        'service = "engine"\nengine = "main-memory"\nprices = "no.toml"': "prices: no.toml: no such file",
        'service = "table"\nrows = 1000000000000': "rows: 256 TB do not fit the 756 GiB of pmem",
        "update_percent = 101": "update_percent: 101 is too large; choose at most 100",
        "writers = 47": "writers: 51 threads",
        'study = "restart"\ncrash_at = 2': 'crash_at: 2 lacks a unit; write a time like "300 ns"',
        'study = "group-commit"\nrate = 1\ntimeout = 10': "timeout: 10 lacks a unit; write a time",
        'study = "propagation"\nrate = 1\ndirty_lines = 257': "dirty_lines: 257 of a page with 256 lines",
        'study = "long-run"\nrate = 1\nsegment = "1 ps"': "segment: 1 ps parts the run into 10000000000 "
        "segments, each on a server of its own; choose at least 1 us",
        'study = "tenants"\nservice = "table"\nrows = 100\nscan_rows = 101': "scan_rows: 101 of a table with "
        "100 rows; choose at most that",
        "dirty_target = 256": "dirty_target: 256 is not below dirty_limit; choose at most 255",
    },
}


@pytest.mark.parametrize(("kind", "line"), [(kind, line) for kind, lines in BEYOND.items() for line in lines])
def test_a_value_that_the_core_would_refuse(
    kind: str, line: str, working_folder: Path, complaint: Callable[..., str]
) -> None:
    (working_folder / "s.toml").write_text(of_kind(kind, line))
    assert f"pmsim: s.toml: parameters.{BEYOND[kind][line]}" in complaint("run", "s.toml", "--dry-run")
