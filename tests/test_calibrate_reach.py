"""What a search does not reach is told: in the table, in the notes and in the sources of the profile."""

from types import SimpleNamespace

import pytest

import pmsim
from pmsim import calibrate
from pmsim.calibrate import Row
from pmsim.calibrate_draft import Draft
from pmsim.calibrate_reach import limits
from pmsim.calibrate_steps import Step
from pmsim.commands.calibrate import _cells
from pmsim.host_machine import HostMachine

ROW = "read, load random, 1 thread"


def reads(measured_ns):
    """Return lines that one thread reads without order, and how long one took on a machine."""
    loads = {"memory": "dram", "operation": "load", "pattern": "random", "threads": 1}
    subject = SimpleNamespace(
        name=ROW,
        host={},
        unit="GB/s",
        value=lambda timing: 64 / timing.ns,
        spread=lambda timing: 0.0,
        predict=lambda platform: pmsim.simulate_point("bandwidth", platform, loads)["bandwidth_gb_s"],
    )
    return subject, SimpleNamespace(ns=measured_ns, cpu_share=1.0)


def fitted(measured_ns, window):
    """Fit the fill buffers of a machine with such a window to reads: rows, and the draft of the profile."""
    host = HostMachine("cpu", 2, 2, 1, (), 2**30, ("clflush",), False, "6.1", "never")
    draft = Draft(pmsim.load_platform("spr-cxl"), host, "x", "today")
    draft.set("core.window", window, "measured")
    subject, timing = reads(measured_ns)
    step = Step("parallel reads", ("core.line_fill_buffers",), (ROW,), {})
    rows = calibrate._fit(draft, [step], {ROW: subject}, {ROW: timing}, lambda doing: None, 1)
    return rows, draft


def test_a_row_that_a_measured_window_keeps_from_its_measurement_is_told_everywhere():
    (row,), draft = fitted(measured_ns=5.0, window=64)
    assert row.ratio < 0.8
    assert row.missed
    assert row.limited_by == ("core.window",)
    assert _cells(row)[-1] == "fitted, not reached"
    source = draft.platform.parameters["core"]["line_fill_buffers"].source
    said = f"{row.ratio:.2f} of what is measured, limited by core.window"
    assert source.endswith(f"; not reached: {ROW} comes out at {said}")
    (warning,) = calibrate._warnings(SimpleNamespace(virtual=False), [row], None)
    assert warning == (
        "1 of the 1 microbenchmarks that were fitted to is not reached within a factor of 1.25: "
        f"{ROW} comes out at {said}"
    )


def test_a_row_that_is_reached_is_fitted_and_no_more():
    subject, _ = reads(1.0)
    now = 64 / subject.predict(pmsim.load_platform("spr-cxl"))
    (row,), draft = fitted(now, pmsim.load_platform("spr-cxl").value("core", "window"))
    assert (row.missed, row.limited_by, _cells(row)[-1]) == (False, (), "fitted")
    assert "not reached" not in draft.platform.parameters["core"]["line_fill_buffers"].source
    assert calibrate._warnings(SimpleNamespace(virtual=False), [row], None) == []


@pytest.mark.parametrize(
    ("predicted", "is_fitted", "missed"),
    [(1.25, True, False), (1.26, True, True), (0.8, True, False), (0.79, True, True), (0.1, False, False)],
)
def test_a_fitted_row_is_missed_beyond_a_factor_that_is_stated(predicted, is_fitted, missed):
    subject, timing = reads(64.0)
    assert Row(subject, timing, predicted, is_fitted).missed is missed


def test_what_comes_out_too_fast_has_no_limit():
    subject, _ = reads(1.0)
    platform = pmsim.load_platform("spr-cxl")
    assert limits(platform, subject, subject.predict(platform) / 2) == ()
