"""Writes the figure of a scenario as a PNG, for documents that cannot show the report.

    .venv/bin/python scripts/render_figure.py quickstart docs/figures/quickstart.png

It runs the scenario and photographs the figure with a browser that is already there (chromium or another),
so that pmsim needs no renderer among its dependencies.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pmsim
from pmsim.api import load_scenario
from pmsim.errors import PmsimError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH_PX = 1000


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the figure of a scenario as a PNG.")
    parser.add_argument("scenario", help="a path, or the name of a shipped scenario")
    parser.add_argument("png", type=Path, help="file to write")
    parser.add_argument("--out", type=Path, help="output directory of `pmsim run`: takes its finished points")
    given = parser.parse_args()
    try:
        return render(given.scenario, given.png, given.out)
    except (PmsimError, OSError, subprocess.SubprocessError) as error:
        print(f"render_figure: {error}", file=sys.stderr)
        return 2


def render(name: str, png: Path, out: Path | None) -> int:
    """Run a scenario, or take its finished points from `out`, and write its figure to `png`."""
    scenario = load_scenario(name)
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"render_figure: no browser; install one of {', '.join(BROWSERS)}", file=sys.stderr)
        return 2
    figure = pmsim.run(scenario, out=out).figure()
    figure.update_layout(width=WIDTH_PX)
    png.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "figure.html"
        body = figure.to_html(full_html=False, include_plotlyjs=True, config={"displayModeBar": False})
        page.write_text(
            f'<meta charset="utf-8"><body style="margin:0;background:white">{body}', encoding="utf-8"
        )
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",  # only our own page is opened
                "--disable-gpu",
                "--disable-background-networking",
                "--hide-scrollbars",
                f"--user-data-dir={folder}/profile",
                "--virtual-time-budget=10000",
                f"--window-size={WIDTH_PX},{int(figure.layout.height)}",
                f"--screenshot={png.resolve()}",
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )
    print(png)
    return 0


if __name__ == "__main__":
    sys.exit(main())
