"""Runs Open MPI's mpirun once, and finds out how the run ended.

mpirun explains most failures in boxes, texts between two lines of dashes. But Open MPI 4.1.4 sometimes loses the box
that names the dead rank. So a shell around each rank reports its end on stderr.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

_DASHES = re.compile(r"-{60,}\s*")
# Lines without information: about other lines, about a child that was faster than its parent, and a shell's name of a
# signal. The line with show_help.c stands in place of a box, which Debian's Open MPI 4.1.4 loses.
_NOISE = re.compile(r"\[.*\] (\d+ more process(es)? ha(s|ve) sent help message|Set MCA parameter .* to see all help|"
                    r".*ORTE_ERROR_LOG: .*show_help\.c|plm:rsh: Warning: setpgid)|"
                    r"(Killed|Terminated|User defined signal 1)$")
_LOST = re.compile(r"lost communication with a remote daemon.*Remote daemon\s*:\s*\S+ on node\s+(\S+)", re.DOTALL)
# Boxes with less information than the reports of the shells.
_ENDS = re.compile(r"Primary job\s+terminated normally|MPI_ABORT was invoked|exited on signal \d|exiting improperly|"
                   r"one or more processes exited with non-zero status")
# Runs a rank. If mpirun or the user ends the rank by a signal, the shell survives and reports it.
_RANK = """trap : HUP INT TERM USR1
"$@"
code=$?
[ $code -eq 0 ] || echo "launch: rank $OMPI_COMM_WORLD_RANK on $(uname -n) ended: $code" >&2
exit $code"""
_REPORT = re.compile(r"launch: rank (\d+) on (\S+) ended: (\d+)$")
# The line that a rank of weft prints if another rank is silent; see distributed/rank_watch.h and connect_messenger.h.
_SILENT = re.compile(r"weft: ((?:a rank|rank \d+) has not answered for .*); ending all ranks")


@dataclass
class End:
    """How a run ended. `message` is one line."""

    code: int
    message: str = ""
    rank_died: bool = False  # a rank or its machine is lost, so that other ranks can continue
    dead_ranks: int = 0
    host: Optional[str] = None  # the machine of a dead rank, if it is known
    interrupted: bool = False


def find(say):
    """Returns the path of Open MPI's mpirun. If there is none, calls `say` with the reason and returns None."""
    for name in ("mpirun.openmpi", "mpirun"):
        if (path := shutil.which(name)) is None:
            continue
        version = subprocess.run([path, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if "open-mpi.org" in version.stdout:
            return path
        say(f"{path} is not that of Open MPI; on Debian, `apt install openmpi-bin` installs it beside others")
        return None
    say("there is no mpirun; on Debian, `apt install openmpi-bin` installs it, and so does tools/setup")
    return None


class _Reader:
    """Passes on the lines of mpirun's stderr, except reports of ranks, known boxes and lines without information."""

    def __init__(self):
        self.reports = []  # the ends of ranks: matches of _REPORT
        self.silent = None  # the first match of _SILENT
        self.lost = None  # the first match of _LOST
        self._box = None  # the lines of a box that has not ended

    def line(self, line: str) -> None:
        if report := _REPORT.match(line):
            self.reports.append(report)
        elif _DASHES.fullmatch(line):
            if self._box is None:
                self._box = [line]
            else:
                self._end_box(line)
        elif self._box is not None:
            self._box.append(line)
        elif not _NOISE.match(line):
            self.silent = self.silent or _SILENT.match(line)
            self._write(line)

    def end(self) -> None:
        if self._box is not None:
            self._write("".join(self._box))

    def _end_box(self, line: str) -> None:
        text = "".join(self._box[1:])
        self.lost = self.lost or _LOST.search(text)
        if not _LOST.search(text) and not _ENDS.search(text):
            self._write("".join(self._box) + line)
        self._box = None

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _descendants(process: int) -> list:
    """Returns the ids of the processes that `process` has started, except ssh, which leads to other machines."""
    found = []
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            ids = [int(child) for child in children.read_text().split()]
            ids = [child for child in ids if Path(f"/proc/{child}/comm").read_text().strip() != "ssh"]
        except OSError:
            continue  # it has ended
        for child in ids:
            found += [child, *_descendants(child)]
    return found


def _command(launcher: str, ranks: int, host_file, program: list) -> list:
    # By default, mpirun binds each rank to one core, and starts at most one rank for each core.
    command = [launcher, "-np", str(ranks), "--bind-to", "none"]
    command += ["--oversubscribe"] if host_file is None else ["--hostfile", host_file]
    if os.geteuid() == 0:
        command += ["--allow-run-as-root"]
    if "WEFT_MPI_PLUGIN" in os.environ:
        command += ["-x", "WEFT_MPI_PLUGIN"]
    return command + ["sh", "-c", _RANK, "rank", *program]


def run(launcher: str, ranks: int, machines, program: list) -> End:
    """Runs `program` as `ranks` ranks on `machines` (see hosts.py), or on this machine if `machines` is None."""
    host_file = None
    if machines is not None:
        with tempfile.NamedTemporaryFile("w", prefix="weft-hosts-", delete=False) as file:
            file.writelines(f"{host} slots={slots}\n" for host, slots in machines.items())
        host_file = file.name
    try:
        return _run(_command(launcher, ranks, host_file, program))
    finally:
        if host_file is not None:
            os.unlink(host_file)


def _run(command: list) -> End:
    caught = []

    def pass_on(number, _frame):
        caught.append(number)
        if len(caught) == 1:
            for rank in _descendants(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rank, number)
        else:
            process.terminate()

    # In a session of its own, mpirun gets no signals from the terminal. On such signals it would kill the ranks.
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                               start_new_session=True)
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
    before = [signal.signal(number, pass_on) for number in signals]
    try:
        reader = _Reader()
        for line in process.stderr:
            reader.line(line)
        reader.end()
        code = process.wait()
    finally:
        for number, handler in zip(signals, before):
            signal.signal(number, handler)
    if caught:
        return End(code, f"the run was stopped by {signal.Signals(caught[0]).name}", interrupted=True)
    return _explain(code, reader)


def _explain(code: int, reader: _Reader) -> End:
    if code == 0:
        return End(0)
    for report in reader.reports:
        # mpirun ends the other ranks by SIGTERM. If it needs SIGKILL, their shells die, too, and report nothing.
        number = int(report[3]) - 128
        if number > 0 and number != signal.SIGTERM:
            return End(code, f"rank {report[1]} on {report[2]} was ended by {_signal_name(number)}", rank_died=True,
                       dead_ranks=1, host=report[2])
    if reader.silent is not None:
        return End(code, f"{reader.silent[1]}, so all ranks were ended", rank_died=True, dead_ranks=1)
    if reader.lost is not None:
        return End(code, f"the connection to the machine {reader.lost[1]} is lost", rank_died=True)
    if reader.reports:
        report = reader.reports[0]
        return End(int(report[3]), f"rank {report[1]} on {report[2]} ended with exit code {report[3]}")
    if code < 0:
        return End(code, f"mpirun was ended by {_signal_name(-code)}")
    return End(code, f"mpirun ended with exit code {code}")


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
