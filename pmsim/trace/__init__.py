"""Traces: micro-operations in a file, of pmsim or of other programs, to be timed on any platform."""

from pmsim.trace.exchange import export, import_from
from pmsim.trace.record import record
from pmsim.trace.replay import replay
from pmsim.trace.requests import RequestCounts, requests
from pmsim.trace_file import TraceInfo, info, recorded_platform

__all__ = [
    "RequestCounts",
    "TraceInfo",
    "export",
    "import_from",
    "info",
    "record",
    "recorded_platform",
    "replay",
    "requests",
]
