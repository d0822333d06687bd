"""The type stubs of the extension are those of the extension."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "generate_stubs.py"


def test_the_stubs_are_what_the_generator_makes_of_the_extension():
    check = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stderr
