"""Kind "node": micro-operations on nodes of B+-trees, in five layouts."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from pmsim.errors import ConfigError
from pmsim.kinds.base import Kind, Metric
from pmsim.kinds.buildable import check_workload
from pmsim.kinds.checks import check_region
from pmsim.kinds.length import LENGTH, Length
from pmsim.kinds.library import LIBRARY_CYCLES, LibraryCycles
from pmsim.kinds.measurement import BATCHED_LATENCY_METRICS, COMMON_METRICS, measure
from pmsim.kinds.types import KindParameters, LineSize, Memory
from pmsim.platforms import Platform
from pmsim.units import Measures, Quantity, parse

_MOST_NODE_BYTES = 8192
_MOST_ENTRIES = 341
_MOST_DEPTH = 16
_MOST_CHAIN = 1_000_000

#: Parameters of a traversal; the others are of operations within nodes.
_TRAVERSAL = ("depth", "inner_memory")
_BOTH = ("node_size", "memory", "region_size", "length")


def _node_size(value: object) -> int:
    size = parse(value, Quantity.SIZE)
    if not 0 < size <= _MOST_NODE_BYTES:
        raise ConfigError(f"{size} B for a node; choose at most {_MOST_NODE_BYTES // 1024} KiB")
    return size


def _between(low: int, high: int, what: str) -> BeforeValidator:
    def check(value: object) -> int:
        count = parse(value, Quantity.COUNT)
        if not low <= count <= high:
            raise ConfigError(f"{count} {what}; choose {low} to {high}")
        return count

    return BeforeValidator(check)


NodeSize = Annotated[int, BeforeValidator(_node_size), Measures(Quantity.SIZE)]
Entries = Annotated[int, _between(0, _MOST_ENTRIES, "pairs"), Measures(Quantity.COUNT)]
Depth = Annotated[int, _between(1, _MOST_DEPTH, "levels"), Measures(Quantity.COUNT)]
Chain = Annotated[int, _between(1, _MOST_CHAIN, "nodes in a chain"), Measures(Quantity.COUNT)]


class NodeParameters(KindParameters):
    """Parameters of kind "node"."""

    operation: Literal[
        "search",
        "traverse",
        "iterate",
        "insert",
        "split",
        "erase",
        "balance",
        "merge",
        "allocate",
        "deallocate",
    ] = Field(
        "search", description="the micro-operation, each timed on its own; E1 to E5 and E8 to E10 of the paper"
    )
    layout: Literal["sorted", "unsorted", "indirection", "hashing", "bitmap"] = Field(
        "hashing", description="how a node finds its pairs"
    )
    node_size: NodeSize = Field(1024, description="bytes of a node, in which as many pairs lie as fit [B]")
    header: Literal["padded", "packed"] = Field(
        "padded",
        description="padded: keys begin on a line; packed: right behind count and pointers (sorted, unsorted)",
    )
    entries: Entries = Field(0, description="pairs of a full node, where not as many as fit (0)")
    position: Literal["first", "middle", "last", "random"] = Field(
        "middle",
        description="rank of the key that is searched, inserted or erased; the core learns the branches of a "
        "fixed one, those of a random one it cannot know",
    )
    order: Literal["ascending", "random"] = Field(
        "ascending", description="the order in which the pairs of a node were inserted"
    )
    persist: Literal["once", "ordered", "transaction"] = Field(
        "once",
        description="once: all changed lines, one fence, as in the paper; ordered: what publishes a "
        "change comes after it is durable, so that a crash leaves all or nothing; transaction: an undo log, "
        "as PMDK's",
    )
    split: Literal["move", "copy"] = Field(
        "move", description="move pairs, or copy the node and divide the pairs by bitmaps"
    )
    allocation: Literal["transaction", "none"] = Field(
        "transaction", description="whether a split allocates the new node, in a transaction as PMDK does"
    )
    direction: Literal["smaller", "larger"] = Field(
        "smaller", description="balance: whether the receiver has the smaller or the larger keys"
    )
    iterate_by: Literal["count", "bitmap", "slots"] = Field(
        "bitmap", description="iterate: what tells which places hold pairs"
    )
    chain: Chain = Field(64, description="iterate: nodes of a chain")
    depth: Depth = Field(3, description="traverse: levels of inner nodes above the leaf")
    inner_memory: Memory = Field("pmem", description="traverse: where the inner nodes are")
    memory: Memory = Field("pmem", description="where the nodes (traverse: the leaves) are")
    region_size: LineSize = Field(
        64 * 2**20, description="bytes of all nodes with the allocator's headers; traverse: of each level [B]"
    )
    library_cycles: LibraryCycles = Field(
        LIBRARY_CYCLES, description="CPU cycles of a call of the transaction library; a calibration"
    )
    length: Length = LENGTH


class Node(Kind[NodeParameters]):
    """Design primitives of persistent B+-trees (Götze et al., DaMoN 2020)."""

    name = "node"
    app_direct = True
    title = "Micro-operations on B+-tree nodes: search, insert, split, balance and others in five layouts"
    default_metric = "latency_ns"
    metrics = (
        *BATCHED_LATENCY_METRICS,
        Metric("entries", "", "pairs of a full node"),
        Metric("bytes_per_pair", "B", "bytes of a node over its pairs"),
        Metric("bytes_changed_per_op", "B", "bytes of nodes that an operation changes"),
        Metric("lines_written_per_op", "", "lines of nodes that an operation writes back"),
        *COMMON_METRICS,
    )
    parameter_model = NodeParameters

    def check(self, machine: Platform, parameters: NodeParameters) -> None:
        """Refuse nodes that hold nothing, changes that no order makes atomic, regions that do not fit."""
        check_region(machine, parameters.memory, parameters.region_size)
        if parameters.operation == "traverse":
            levels = parameters.region_size * parameters.depth
            check_region(machine, parameters.inner_memory, levels)
        check_workload(*self._workload(machine, parameters))

    def run(self, machine: Platform, parameters: NodeParameters, seed: int) -> dict[str, int | float]:
        """Simulate the operation on random nodes, one at a time."""
        result = measure(*self._workload(machine, parameters), seed)
        none = {"entries": 0, "bytes_per_pair": 0, "bytes_changed_per_op": 0, "lines_written_per_op": 0}
        return result.latencies() | none | dict(result.facts) | result.common()

    @staticmethod
    def _workload(machine: Platform, parameters: NodeParameters) -> tuple[str, Platform, dict[str, int | str]]:
        given: dict[str, int | str] = parameters.model_dump()
        if parameters.operation == "traverse":
            return "traverse", machine, {name: given[name] for name in (*_TRAVERSAL, *_BOTH)}
        return "node", machine, {name: value for name, value in given.items() if name not in _TRAVERSAL}
