"""A platform as the text of a profile."""

from pmsim.fields import fields
from pmsim.platforms import DURABLE, Platform
from pmsim.units import Quantity, format_value

_TEXTS = ("name", "title", "kind", "latency_definition", "notes")


def profile_text(platform: Platform) -> str:
    """Return the TOML of a platform: it reads back as the same machine.

    A block device without capacity is left out: a profile that does not name one has none.
    """
    lines = [f"{key} = {_quoted(getattr(platform, key))}" for key in _TEXTS]
    if platform.pmem_priced_as != "pmem":
        lines.append(f"pmem_priced_as = {_quoted(platform.pmem_priced_as)}")
    if platform.pmem_persistence != DURABLE:
        lines.append(f"pmem_persistence = {_quoted(platform.pmem_persistence)}")
    for section, names in fields().items():
        if section == "block" and platform.value("block", "capacity") == 0:
            continue
        lines += ["", f"[{section}]"]
        for name, field in names.items():
            parameter = platform.parameters[section][name]
            shown = format_value(parameter.value, field.quantity)
            value = shown if field.quantity in (Quantity.COUNT, Quantity.FLAG) else _quoted(shown)
            lines.append(
                f"{name} = {{ value = {value}, source = {_quoted(parameter.source)}, "
                f"origin = {_quoted(parameter.origin)} }}"
            )
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    plain = " ".join(text.split())
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
