"""Shipped scenarios with something changed in them: usable, or refused in one clear line with exit status 2."""

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pmsim.cli import main
from pmsim.resources import scenarios_dir

Place = tuple[str | int, ...]

SHIPPED = {path.stem: tomllib.loads(path.read_text()) for path in sorted(scenarios_dir().rglob("*.toml"))}
SECTIONS = ["parameters", "sweep", "plot", "platform", "groups", "metrics", "seed", "kind", "name"]
#: What nobody wants at most places; ranges are short, since a long sweep is no mistake.
VALUES: list[Any] = [
    *(0, -1, 1, 7, 2**31, 2**63 - 1, 2**63, 10**40, 0.0, 0.5, 1e308, float("nan"), float("inf"), True, False),
    *(
        "",
        "0",
        "all",
        "platform",
        "4 KiB",
        "1e99 GiB",
        "300 ns",
        "1 GB/s",
        "nan ns",
        "\N{MICRO SIGN}",
        "a\nb",
        "\0",
    ),
    *(
        [],
        [[]],
        [1],
        ["a", 1],
        [{}],
        {},
        {"a": {"b": 1}},
        {"from": 1, "to": 9, "steps": 3},
        {"base": "tum-6212u"},
    ),
]


def places(value: Any, place: Place = ()) -> list[Place]:
    """Return where every value of a table is, however deep."""
    if isinstance(value, dict | list):
        members = value.items() if isinstance(value, dict) else enumerate(value)
        return [place, *(deeper for key, member in members for deeper in places(member, (*place, key)))]
    return [place]


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a shipped scenario in which one or two values are changed, removed, doubled, renamed or added."""
    table = copy.deepcopy(draw(st.sampled_from(list(SHIPPED.values()))))
    # Copies: the second change may be made within the value that the first one has set.
    values = st.sampled_from(VALUES).map(copy.deepcopy)
    for _ in range(draw(st.integers(1, 2))):
        *above, key = draw(st.sampled_from(places(table)[1:] or [("kind",)]))
        parent: Any = table
        for part in above:
            parent = parent[part]
        change = draw(st.sampled_from(["set", "remove", "double", "rename", "add"]))
        if change == "set" or (change in ("rename", "add") and isinstance(parent, list)) or key not in parent:
            parent[key] = draw(values)
        elif change == "remove":
            del parent[key]
        elif change == "double":
            parent[key] = [parent[key], copy.deepcopy(parent[key])]
        elif change == "rename":
            parent[f"{key}x"] = parent.pop(key)
        else:
            parent[draw(st.sampled_from(SECTIONS))] = draw(values)
    return table


@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=mutated())
def test_a_mutated_scenario_is_usable_or_refused_in_one_line(
    table: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    status = main(["run", str(path), "--dry-run", "--out", str(tmp_path / "out")])
    said = capsys.readouterr().err
    assert status in (0, 2)
    if status == 0:
        assert said == ""
        return
    assert said.startswith(f"pmsim: {path}: "), said
    assert said.endswith("\n")
    assert said.count("\n") == 1
    assert ";" in said or "?" in said, said  # the remedy
