"""Whatever is wrong with a scenario: one line with place and remedy, and exit status 2."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pmsim import platform_names

HEAD = 'kind = "bandwidth"\nplatform = "tum-6212u"\n'


@dataclass(frozen=True)
class Case:
    """Content of a file, and what the one line must say: where, and what to do."""

    content: str
    place: str
    remedy: str


def parameters(line: str) -> str:
    return f"{HEAD}[parameters]\n{line}\n"


def sweep(line: str) -> str:
    return f"{HEAD}[sweep]\n{line}\n"


def plot(line: str) -> str:
    return f"{HEAD}[plot]\n{line}\n"


SCENARIOS = {
    # the file as a whole
    "not TOML": Case("kind = bandwidth\n", "s.toml: not TOML", "correct the file"),
    "two values for a key": Case("seed = 1\nseed = 2\n", "s.toml: not TOML", "correct the file"),
    "a number of thousands of digits": Case(f"seed = {'9' * 5000}\n", "s.toml: not TOML", "correct the file"),
    "a name that steers the terminal": Case(
        HEAD + 'name = "\\u001b[31m"\n', r"name: '\x1b[31m' cannot", "use a to z"
    ),
    "a key of a thousand letters": Case(HEAD + f"{'x' * 1000} = 1\n", f"s.toml: {'x' * 400}...", "known: "),
    "empty file": Case("", "kind: missing", "add it, for example one of `pmsim list kinds`"),
    "unknown key": Case(HEAD + "sede = 1\n", "sede: unknown key", "did you mean 'seed'"),
    "unknown table": Case(HEAD + "[parameter]\nthreads = 1\n", "parameter: unknown key", "'parameters'"),
    "unknown kind": Case('kind = "bandwith"\nplatform = "tum-6212u"\n', "kind: unknown", "'bandwidth'"),
    "kind is a number": Case('kind = 3\nplatform = "tum-6212u"\n', "kind: 3 is not text", "write it in quotes"),
    "seed is text": Case(HEAD + 'seed = "1"\n', "seed: '1' is not an integer", "without quotes"),
    "seed is negative": Case(HEAD + "seed = -1\n", "seed: -1", "choose at least 0"),
    "seed is a float": Case(HEAD + "seed = 1.0\n", "seed: 1.0 is not an integer", "whole number"),
    "seed is a flag": Case(HEAD + "seed = true\n", "seed: true is not an integer", "whole number"),
    "name with a slash": Case(HEAD + 'name = "../x"\n', "name: '../x' cannot name a folder", "use a to z"),
    "metrics is text": Case(HEAD + 'metrics = "latency_ns"\n', "metrics: 'latency_ns' is not a list", "[a, b]"),
    "unknown metric": Case(HEAD + 'metrics = ["bandwidth"]\n', "metrics: unknown metric", "'bandwidth_gb_s'"),
    # platforms
    "unknown platform": Case(
        'kind = "latency"\nplatform = "tum-6212"\n', "platform: unknown platform 'tum-6212'", "'tum-6212u'"
    ),
    "platform of no name": Case(
        'kind = "latency"\nplatform = ""\n',
        "platform: unknown platform ''",
        f"known: {', '.join(platform_names()[:6])}",
    ),
    "platform is a number": Case(
        'kind = "latency"\nplatform = 1\n', "platform: 1 is neither", 'platform = "NAME"'
    ),
    "platform is a drive": Case(
        'kind = "latency"\nplatform = "nvme-p4510"\n', "'nvme-p4510' is a block-device", "choose a machine"
    ),
    "platform file is missing": Case(
        'kind = "latency"\nplatform = "absent.toml"\n', "absent.toml: no such file", "check the path"
    ),
    "derived platform without a base": Case(
        'kind = "latency"\nplatform = {pmem = {dimms = 2}}\n',
        "platform: a derived platform needs a base",
        "base =",
    ),
    "derived platform: unknown section": Case(
        'kind = "latency"\nplatform = {base = "tum-6212u", pmen = {dimms = 2}}\n', "platform.pmen", "'pmem'"
    ),
    "derived platform: unknown parameter": Case(
        'kind = "latency"\nplatform = {base = "tum-6212u", pmem = {dimm = 2}}\n',
        "platform.pmem.dimm",
        "'dimms'",
    ),
    "derived platform: time without a unit": Case(
        'kind = "latency"\nplatform = {base = "tum-6212u", pmem = {media_read_latency = 300}}\n',
        "platform.pmem.media_read_latency: 300 lacks a unit",
        '"300 ns"',
    ),
    "derived platform: time in bytes": Case(
        'kind = "latency"\nplatform = {base = "tum-6212u", pmem = {media_read_latency = "300 B"}}\n',
        "platform.pmem.media_read_latency: '300 B' is a size, not a time",
        '"300 ns"',
    ),
    "derived platform: fraction of a picosecond": Case(
        'kind = "latency"\nplatform = {base = "tum-6212u", pmem = {media_read_latency = "0.3 ps"}}\n',
        "platform.pmem.media_read_latency: '0.3 ps' is not a whole number of ps",
        "write for example '1 ps'",
    ),
    "derived platform: out of range": Case(
        'kind = "latency"\nplatform = {base = "tum-6212u", core = {cores = 0}}\n',
        "platform.core.cores: 0 is out of range",
        "choose 1 to 256",
    ),
    "derived platform: a section with a value": Case(
        'kind = "latency"\nplatform = {base = "tum-6212u", pmem = 3}\n',
        "platform.pmem: is a section",
        "{NAME = value}",
    ),
    "impossible machine: more modules than channels": Case(
        'kind = "latency"\nplatform = {base = "tum-6212u", pmem = {dimms = 12}}\n',
        "pmem.dimms: more modules than controller.channels",
        "a channel takes one module",
    ),
    "impossible machine: an L1 larger than L2": Case(
        'kind = "latency"\nplatform = {base = "tum-6212u", l1 = {size = "2 MiB"}}\n',
        "l1.size, l2.size, llc.size",
        "must be at least as large",
    ),
    "unknown block device": Case(
        'kind = "block"\nplatform = {base = "tum-6212u", block_device = "nvme"}\n',
        "platform.block_device: unknown block device 'nvme'",
        "nvme-p4510",
    ),
    "no block device": Case(
        'kind = "block"\nplatform = "tum-6212u"\n', "has no block device", "block_device ="
    ),
    # parameters
    "unknown parameter": Case(parameters("thread = 1"), "parameters.thread: unknown", "'threads'"),
    "unknown choice": Case(parameters('memory = "pmm"'), "parameters.memory: 'pmm' is not one of", "'pmem'"),
    "choice in the wrong case": Case(parameters('memory = "PMEM"'), "parameters.memory: 'PMEM'", "'pmem'"),
    "negative size": Case(
        parameters('region_size = "-4 KiB"'), "parameters.region_size: '-4 KiB' is negative", "at least"
    ),
    "fractional bytes": Case(
        parameters('access_size = "0.3 B"'),
        "parameters.access_size: '0.3 B' is not a whole number",
        "write for example '1 B'",
    ),
    "size in nanoseconds": Case(
        parameters('access_size = "64 ns"'), "parameters.access_size: '64 ns' is a time, not a size", "KiB"
    ),
    "size with an ambiguous unit": Case(
        parameters('access_size = "4 KB"'), "parameters.access_size: '4 KB': 'KB' is ambiguous", "'KiB'"
    ),
    "size as a float": Case(
        parameters("access_size = 64.0"), "parameters.access_size: 64.0 is not a size", "4096"
    ),
    "size as a flag": Case(
        parameters("access_size = true"), "parameters.access_size: true is not a size", "4096"
    ),
    "size that is not whole lines": Case(
        parameters("access_size = 100"),
        "parameters.access_size: 100 is not a multiple of 64 B",
        "choose a multiple",
    ),
    "size of zero": Case(
        parameters("access_size = 0"), "parameters.access_size: 0 is too small", "choose at least 64 B"
    ),
    "threads as text": Case(parameters('threads = "4"'), "parameters.threads: '4' is text", "without quotes"),
    "threads as a float": Case(
        parameters("threads = 4.0"), "parameters.threads: 4.0 is not a count", "whole number"
    ),
    "no threads": Case(parameters("threads = 0"), "parameters.threads: 0 is too few", "choose at least 1"),
    "more threads than the machine has": Case(
        parameters("threads = 96"),
        "parameters.threads: 96 threads on platform 'tum-6212u'",
        "choose at most 48",
    ),
    "more modules than the machine has": Case(
        parameters("dimms = 8"), "parameters.dimms: 8 modules on platform 'tum-6212u' with 6", "choose 1 to 6"
    ),
    "modules as a word": Case(parameters('dimms = "some"'), "parameters.dimms: 'some'", "write 'all'"),
    "prefetcher as a number": Case(
        parameters("prefetcher = 1"), "parameters.prefetcher: 1 is not a flag", "write true"
    ),
    "page size that is no power of two": Case(
        parameters('page_size = "12 KiB"'),
        "parameters.page_size: '12 KiB' is not a power of two",
        "choose 4 KiB",
    ),
    "region larger than the memory": Case(
        parameters('memory = "dram"\nregion_size = "1 TiB"'),
        "parameters.region_size: 1 TiB do not fit",
        "at most",
    ),
    "no room for lists of addresses beside the region": Case(
        parameters('memory = "dram"\nregion_size = "192 GiB"\nthreads = 2\naddress_list = true'),
        "parameters.address_list: 196736 MiB do not fit the 192 GiB of dram",
        "64 MiB for each thread",
    ),
    "region larger than one module": Case(
        parameters('dimms = 1\nregion_size = "300 GiB"'), "pmem of 1 module of platform", "choose at most that"
    ),
    "access larger than the region": Case(
        parameters('region_size = "4 KiB"\naccess_size = "8 KiB"'),
        "parameters.access_size: 8 KiB",
        "larger region",
    ),
    "stride without the strided pattern": Case(
        parameters("stride = 512"), "parameters.stride: has no meaning for pattern = 'random'", "remove it"
    ),
    "alignment without the random pattern": Case(
        parameters('pattern = "sequential"\nalignment = 512'),
        "parameters.alignment: has no meaning for pattern = 'sequential'",
        "remove it",
    ),
    "strided without a stride": Case(
        parameters('pattern = "strided"'),
        "parameters.stride: missing for pattern = 'strided'",
        "give the distance",
    ),
    "stride below the access": Case(
        parameters('pattern = "strided"\nstride = 128'),
        "parameters.stride: 128 B are less",
        "choose at least 256",
    ),
    "fences without stores": Case(
        parameters("fence_every = 64"),
        "parameters.fence_every: has no meaning for operation = 'load'",
        "remove it",
    ),
    "parameters is a list": Case(
        HEAD + "parameters = [1]\n", "parameters: [1] is not a table", "{key = value}"
    ),
    "chain that is none": Case(
        'kind = "operations"\nplatform = "tum-6212u"\n[parameters]\noperations = "rp_64,xp_64"\n',
        "parameters.operations: step 2 'xp_64' is not an operation",
        "write rp_SIZE",
    ),
    "modules for a region on DRAM": Case(
        parameters('memory = "dram"\ndimms = 2'),
        "parameters.dimms: has no meaning for memory = 'dram'",
        "remove it or use 'pmem'",
    ),
    "modules for persists on DRAM": Case(
        'kind = "persist"\nplatform = "tum-6212u"\n[parameters]\nmemory = "dram"\ndimms = 2\n',
        "parameters.dimms: has no meaning for memory = 'dram'",
        "remove it or use 'pmem'",
    ),
    "chain that begins with a write": Case(
        'kind = "operations"\nplatform = "tum-6212u"\n[parameters]\noperations = "wp_64_cache,rp_64"\n',
        "parameters.operations: step 1 'wp_64_cache' writes at the last address, and nothing has been read yet",
        "begin with a read",
    ),
    "chain with a ragged size": Case(
        'kind = "operations"\nplatform = "tum-6212u"\n[parameters]\noperations = "rp_100"\n',
        "parameters.operations: step 1 'rp_100': 100 B",
        "choose a multiple of 64",
    ),
    "group with an unknown task": Case(
        'kind = "mixed"\nplatform = "tum-6212u"\n[parameters]\ngroups = [{task = "scam"}]\n',
        "parameters.groups.1.task: 'scam' is not one of",
        "'scan'",
    ),
    "group with an unknown key": Case(
        'kind = "mixed"\nplatform = "tum-6212u"\n[parameters]\ngroups = [{task = "scan", thread = 2}]\n',
        "parameters.groups.1.thread: unknown key",
        "'threads'",
    ),
    "groups without room for what is written": Case(
        'kind = "mixed"\nplatform = {base = "tum-6212u", dram = {capacity = "10 GiB"}}\n[parameters]\n'
        'groups = [{task = "scan", memory = "dram"}, {task = "page", threads = 2}]\n',
        "parameters.region_size: 10368 MiB do not fit the 10 GiB of dram",
        "what log and page writers read from",
    ),
    "groups with too many threads together": Case(
        'kind = "mixed"\nplatform = "tum-6212u"\n[parameters]\n'
        'groups = [{task = "scan", threads = 40}, {task = "log", threads = 9}]\n',
        "parameters.groups: 49 threads",
        "choose at most 48",
    ),
    "stride larger than the region": Case(
        parameters('pattern = "strided"\nstride = "1 TiB"'),
        "parameters.stride: 1 TiB are more than region_size",
        "larger region",
    ),
    "chunks further apart than the region is long": Case(
        parameters('alignment = "1 TiB"'),
        "parameters.alignment: 1 TiB are more than region_size",
        "larger region",
    ),
    "access larger than a thread's part of the region": Case(
        parameters('pattern = "sequential"\nthreads = 24\nregion_size = "1 KiB"\naccess_size = 64'),
        "parameters.access_size: 64 B are more than each of 24 threads has of region_size, 42 B",
        "larger region",
    ),
    # sweeps
    "empty sweep list": Case(sweep("threads = []"), "sweep.threads: is empty", "at least one value"),
    "sweep that is not a list": Case(sweep("threads = 4"), "sweep.threads: 4 is not a list", "write [a, b]"),
    "unknown axis": Case(sweep("thread = [1, 2]"), "sweep.thread: unknown axis", "'threads'"),
    "the same zipped point twice": Case(
        sweep('mode = "zip"\nthreads = [1, 1]\naccess_size = [64, 64]'),
        "sweep.mode: 'zip' has the point threads = 1, access_size = 64 twice",
        "remove one",
    ),
    "the same size in two units": Case(
        sweep('access_size = [64, "1 KiB", 1024]'),
        "sweep.access_size: holds 1024 and '1 KiB', which are the same",
        "remove one",
    ),
    "the same zipped point in two units": Case(
        sweep('mode = "zip"\nthreads = [1, 1]\naccess_size = ["1 KiB", 1024]'),
        "sweep.mode: 'zip' has the point threads = 1, access_size = 1024 twice",
        "remove one",
    ),
    "no platform": Case('kind = "latency"\n', "platform: missing; add it", "one of `pmsim list platforms`"),
    "the same value twice": Case(sweep("threads = [1, 1]"), "sweep.threads: holds 1 twice", "remove one"),
    "a swept value of the wrong type": Case(
        sweep('threads = [1, "2"]'), "sweep.threads: '2' is text", "without quotes"
    ),
    "a swept value too large": Case(
        sweep("threads = [1, 64]"), "sweep.threads: 64 threads", "choose at most 48"
    ),
    "axis that is also a parameter": Case(
        HEAD + "[parameters]\nthreads = 1\n[sweep]\nthreads = [1, 2]\n",
        "sweep.threads: is also set",
        "remove one",
    ),
    "range without an end": Case(
        sweep("threads = {from = 1, steps = 3}"), "sweep.threads: to: missing", "to = b"
    ),
    "range with an unknown key": Case(
        sweep("threads = {from = 1, to = 4, step = 3}"), "sweep.threads: step: unknown key", "'steps'"
    ),
    "range that goes down": Case(
        sweep("threads = {from = 4, to = 1, steps = 4}"),
        "sweep.threads: to: is not above from",
        "smaller value first",
    ),
    "range that does not come out even": Case(
        sweep("threads = {from = 1, to = 4, steps = 3}"),
        "sweep.threads: steps: 3 do not divide",
        "write a list",
    ),
    "logarithmic range from zero": Case(
        sweep('fence_every = {from = 0, to = 64, steps = 3, scale = "log"}'),
        "sweep.fence_every: from: is 0",
        "at least 1",
    ),
    "range with an unknown scale": Case(
        sweep('threads = {from = 1, to = 4, steps = 4, scale = "ln"}'), "sweep.threads: scale: 'ln'", "'log'"
    ),
    "range over choices": Case(
        sweep("memory = {from = 1, to = 4, steps = 4}"), "sweep.memory: has no ranges", "write a list"
    ),
    "zip of unequal lists": Case(
        sweep('mode = "zip"\nthreads = [1, 2]\naccess_size = [64]'),
        "sweep.mode: 'zip' needs axes of equal",
        "even them",
    ),
    "unknown sweep mode": Case(
        sweep('mode = "zipp"\nthreads = [1]'), "sweep.mode: unknown mode 'zipp'", "'zip'"
    ),
    "more points than anyone waits for": Case(
        sweep("threads = {from=1, to=40, steps=40}\naccess_size = {from=64, to=6400000, steps=100000}"),
        "sweep: has 4000000 points",
        "choose at most",
    ),
    "unknown platform parameter in a sweep": Case(
        sweep('"platform.pmem.latency" = ["1 ns"]'),
        "sweep.platform.pmem.latency: pmem.latency: unknown",
        "known",
    ),
    "swept platform parameter without a unit": Case(
        sweep('"platform.pmem.media_read_latency" = [300]'), "media_read_latency: 300 lacks a unit", '"300 ns"'
    ),
    "swept platform that is unknown": Case(
        sweep('platform = ["tum"]'), "sweep.platform: unknown platform 'tum'", "'tum-6212u'"
    ),
    "group that does not exist in a sweep": Case(
        'kind = "mixed"\nplatform = "tum-6212u"\n[sweep]\n"groups.3.threads" = [1]\n',
        "sweep.groups.3.threads: there is no groups.3",
        "choose groups.1 to groups.2",
    ),
    # figures
    "published values of an unknown column": Case(
        HEAD + '[[plot.overlay]]\nlabel = "m"\ncitation = "c"\npoints = [[1, 2]]\nwhere = {thread = 1}\n',
        "plot.overlay.1.where.thread: unknown column",
        "'threads'",
    ),
    "published values of no point": Case(
        HEAD
        + '[[plot.overlay]]\nlabel = "m"\ncitation = "c"\npoints = [[1, 2]]\nwhere = {access_size = "65 B"}\n',
        "plot.overlay.1.where.access_size: no point has '65 B'",
        "choose 256",
    ),
    "published values on no number": Case(
        plot('x = "threads"\n[[plot.overlay]]\nlabel = "m"\ncitation = "c"\npoints = [["a", 2]]'),
        "plot.overlay.1.points.1: 'a' stands on an axis of numbers",
        "write a number",
    ),
    "published values on a list": Case(
        HEAD + '[[plot.overlay]]\nlabel = "m"\ncitation = "c"\npoints = [[[1], 2]]\n',
        "plot.overlay.1: points.1: [[1], 2] is not a pair",
        "write one",
    ),
    "published values that are no numbers": Case(
        plot('x = "threads"\n[[plot.overlay]]\nlabel = "m"\ncitation = "c"\npoints = [[1, nan]]'),
        "plot.overlay.1: points.1: [1, nan] has no place",
        "write numbers",
    ),
    "published values below a logarithmic axis": Case(
        plot('x = "threads"\nlog_x = true\n[[plot.overlay]]\nlabel = "m"\ncitation = "c"\npoints = [[0, 2]]'),
        "plot: overlay.1.points: [0, 2] has no place on the logarithmic axis",
        "a linear axis",
    ),
    "published place left of a logarithmic axis": Case(
        plot('x = "threads"\nlog_x = true\nmark = [{x = 0, label = "m", citation = "c"}]'),
        "plot: mark.1.x: 0 has no place on the logarithmic axis",
        "choose another",
    ),
    "published place at infinity": Case(
        plot('x = "threads"\nmark = [{x = inf, label = "m", citation = "c"}]'),
        "plot: mark.1.x: inf has no place on the axis",
        "choose another",
    ),
    "figure of words over numbers": Case(
        plot('x = "threads"\ny = "memory"'), "plot.y: 'memory' has no numbers", "choose one of bandwidth_gb_s"
    ),
    "logarithms of categories": Case(
        plot('x = "operation"\nlog_x = true'), "plot.log_x: needs a horizontal axis of numbers", "plot.x"
    ),
    "published place in no panel": Case(
        plot('facet = "access_size"\nx = "threads"\nmark = [{x = 1, label = "m", citation = "c", facet = 2}]'),
        "plot.mark.1.facet: no point has 2",
        "choose 256",
    ),
    "unknown key of the figure": Case(plot('colour = "threads"'), "plot.colour: unknown key", "'color'"),
    "figure of an unknown column": Case(plot('x = "thread"'), "plot.x: unknown column 'thread'", "'threads'"),
    "figure of an unknown metric": Case(plot('y = "bandwidth"'), "plot.y: unknown column", "'bandwidth_gb_s'"),
    "published values without a citation": Case(
        HEAD + '[[plot.overlay]]\nlabel = "measured"\npoints = [[1, 2]]\n',
        "plot.overlay.1.citation: missing",
        "add it",
    ),
    "published values that are no pairs": Case(
        HEAD + '[[plot.overlay]]\nlabel = "m"\ncitation = "c"\npoints = [[1]]\n',
        "plot.overlay.1: points.1: [1] is not a pair",
        "write one",
    ),
    "published place on an axis of categories": Case(
        plot('x = "operation"\n[[plot.mark]]\nx = 1\nlabel = "m"\ncitation = "c"'),
        "plot.mark: needs a horizontal axis of numbers",
        "plot.x",
    ),
    "front of axes that are not named": Case(
        plot('x = "threads"\nfront = ["access_size"]'), "plot: front: needs both axes", "with x and y"
    ),
    "front on an axis of categories": Case(
        plot('x = "operation"\ny = "bandwidth_gb_s"\nfront = ["threads"]'),
        "plot.front: needs a horizontal axis of numbers",
        "plot.x",
    ),
    "curves along an unknown axis": Case(
        HEAD + '[sweep]\nthreads = [1, 2]\n[plot]\nx = "threads"\nalong = "nonsense"\n',
        "plot.along: unknown column 'nonsense'",
        "known",
    ),
    "a metric twice": Case(
        HEAD + 'metrics = ["bandwidth_gb_s", "bandwidth_gb_s"]\n',
        "metrics: holds 'bandwidth_gb_s' twice",
        "remove",
    ),
    "name too long for a folder": Case(
        HEAD + f'name = "{"n" * 300}"\n', "has 300 letters, too many for a folder", "choose at most 120"
    ),
    "no label of what is unchanged": Case(HEAD + 'unchanged = ""\n', "unchanged: '' is empty", "write a text"),
    "seed that is too large": Case(
        HEAD + "seed = 9223372036854775808\n", "seed: 9223372036854775808 is too large", "choose less than"
    ),
    "panel that is a list": Case(
        HEAD + '[plot]\nx = "threads"\n[[plot.mark]]\nx = 1\nlabel = "l"\ncitation = "c"\nfacet = [1]\n',
        "plot.mark.1.facet: [1] is not text",
        "write",
    ),
    "key that looks like a type": Case("int = 3\n" + HEAD, "int: unknown key", "did you mean"),
    "key of the figure that looks like a type": Case(plot("str = 3"), "plot.str: unknown key", "known: x"),
    "overlay of nothing": Case(
        HEAD + '[plot]\n[[plot.overlay]]\nlabel = "l"\ncitation = "c"\npoints = []\n',
        "plot.overlay.1.points: [] has 0 members",
        "give at least 1",
    ),
    "front named by an unknown column": Case(
        plot('x = "threads"\ny = "bandwidth_gb_s"\nfront = ["dram"]'), "plot.front.1: unknown column", ""
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_bad_scenario(name: str, working_folder: Path, complaint: Callable[..., str]) -> None:
    case = SCENARIOS[name]
    (working_folder / "s.toml").write_text(case.content)
    line = complaint("run", "s.toml", "--out", "out", "--jobs", "1")
    assert "pmsim: s.toml: " in line
    assert case.place in line
    assert case.remedy in line
