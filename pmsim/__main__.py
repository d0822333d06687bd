"""``python -m pmsim``: the command, where its script is not on the path."""

from pmsim.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
