"""A profile under construction: every value starts as that of a shipped machine, marked as assumed."""

from collections.abc import Sequence
from dataclasses import replace

from pmsim.fields import fields
from pmsim.host_machine import HostMachine
from pmsim.platforms import Parameter, Platform, find_field


def base_of(machine: HostMachine) -> str:
    """Name the shipped profile whose values stand for what is not measured: core widths, channels, queues."""
    golden_cove = any(flag.startswith("amx") for flag in machine.flags) or machine.has("avx_vnni")
    return "spr-cxl" if golden_cove else "tum-6212u"


class Draft:
    """A platform under construction: every value starts as that of the base, marked as assumed."""

    def __init__(self, base: Platform, machine: HostMachine, name: str, date: str) -> None:
        self.date = date
        parameters = {
            section: {
                parameter: Parameter(value.value, f"as {base.name}, not measured: {value.source}", "assumed")
                for parameter, value in values.items()
            }
            for section, values in base.parameters.items()
        }
        none = "the machine as pmsim calibrates it has no block device"
        parameters["block"] = {
            parameter: Parameter(field.minimum, none, "assumed")
            for parameter, field in fields()["block"].items()
        }
        self.platform = Platform(
            name=name,
            title=f"{machine.cpu}, {machine.cores} cores{', virtual' if machine.virtual else ''}",
            kind="machine",
            latency_definition="idle dependent load through the caches",
            notes="",
            parameters=parameters,
        )

    def set(self, key: str, value: int, source: str, origin: str = "measured") -> None:
        """Set a value in base units; it is moved into the range that the core accepts."""
        section, _, name = key.partition(".")
        field = find_field(section, name)
        bounded = min(max(value, field.minimum), field.maximum)
        values = {section: dict(known) for section, known in self.platform.parameters.items()}
        values[section][name] = Parameter(bounded, source, origin)
        self.platform = replace(self.platform, parameters=values)

    def take(self, platform: Platform, keys: Sequence[str], source: str) -> None:
        """Take over values that a search has found."""
        for key in keys:
            section, _, name = key.partition(".")
            self.set(key, platform.value(section, name), source, "fitted")

    def remark(self, keys: Sequence[str], remark: str) -> None:
        """Add to the sources of values what has been found out about them since."""
        for key in keys:
            section, _, name = key.partition(".")
            known = self.platform.parameters[section][name]
            self.set(key, known.value, f"{known.source}; {remark}", known.origin)


def picoseconds(nanoseconds: float) -> int:
    """Picoseconds, three digits: more are noise."""
    return int(float(f"{nanoseconds * 1000:.3g}"))
