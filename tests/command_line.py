"""What tests of the command line share: refusals, and processes that are cut off in the middle."""

import signal
import subprocess
import sys
import time

COMMAND = [sys.executable, "-c", "from spectral_mf.cli import main; main()"]


def check_refused(command, *arguments, says):
    """One sentence on stderr with these words, and exit code 2."""
    code, shown, told = command(*arguments)
    assert (code, shown) == (2, "")
    assert told.startswith("Error: ")
    assert told.count("\n") == 1
    assert says in told


def process_with_rows(*arguments, has_rows):
    """A process that computes rows, once `has_rows()` says that its file holds some; an error if it ends before."""

    def heed_ctrl_c():
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell makes processes in the background deaf to it

    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_ctrl_c,
    )
    deadline = time.monotonic() + 60.0
    while not has_rows():
        assert process.poll() is None, process.communicate()
        if time.monotonic() > deadline:
            process.kill()
            raise AssertionError("the run wrote no rows")
        time.sleep(0.05)  # between two looks at the file
    return process
