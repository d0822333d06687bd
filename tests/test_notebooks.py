"""Notebooks run from the first to the last cell, and are stored without output."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_output(path):
    for cell in read(path).cells:
        if cell.cell_type == "code":
            assert not cell.outputs
            assert cell.execution_count is None


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# The messaging libraries under nbclient warn about their own event loops and sockets.
@pytest.mark.filterwarnings("default")
def test_a_notebook_runs(path):
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(read(path), timeout=600, kernel_name="python3", resources=resources).execute()
