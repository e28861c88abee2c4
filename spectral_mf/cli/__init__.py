"""The command line `spectral-mf`: from tokens or a run file to an HDF5 file and its pictures.

Every command is a file of its own. What a command needs is imported when it runs, so that `--help` is quick.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command that `sys.argv` names, and exit with its code (see `spectral_mf.cli.ending`)."""
    os.environ["MPLBACKEND"] = "Agg"  # pictures go to files: a user's backend is not needed, and may not be there
    try:
        from spectral_mf.cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
