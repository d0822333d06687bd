"""The search for the saturation of a server: what decides where a run of the search meets a single stall."""

import pytest

import pmsim
from pmsim import des
from pmsim.des import studies

MACHINE = pmsim.load_platform("tum-6212u")


@pytest.mark.parametrize(
    ("stalled", "true", "found"),
    [
        (1e6, 1e6, 1e6),  # no stall
        (1e6, 2e6, 2e6),  # a short run meets one, of which a longer one recovers
        (1e6, 1.1e6, 1e6),  # of no consequence
    ],
)
def test_a_stall_is_not_taken_for_the_saturation(
    stalled: float, true: float, found: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []

    def keeps_up(setting: studies.Setting, rate: float, requests: int) -> bool:
        runs.append(requests)
        return rate <= (stalled if requests == min(runs) else true)

    monkeypatch.setattr(studies, "closed_throughput", lambda setting: 1.3e6)
    monkeypatch.setattr(studies, "_keeps_up", keeps_up)
    setting = studies.Setting(MACHINE, (des.ComputePart(),), 1, (des.Ask("compute.run", first=des.US),), seed=1)
    studies.saturation.cache_clear()
    assert studies.saturation(setting) == pytest.approx(found, rel=0.003)
    studies.saturation.cache_clear()
