"""Finds the command that continues a training after a failure: the same command with --resume."""

from pathlib import Path

OVERWRITE = {"--overwrite", "--overwrite-output-dir", "--overwrite_output_dir", "--force"}  # names of one flag


def out_folder(command: list):
    """Returns the value of the last --out, or None."""
    folder = None
    for at, argument in enumerate(command):
        if argument.startswith("--out="):
            folder = argument.partition("=")[2]
        elif argument == "--out" and at + 1 < len(command):
            folder = command[at + 1]
    return folder


class Run:
    """Remembers the run's folder before the first start."""

    def __init__(self, command: list):
        self._command = command
        self._before = self._identity()

    def _identity(self):
        """Identifies config.json: with --overwrite, it may be that of an older run, which this run replaces."""
        folder = out_folder(self._command)
        try:
            status = Path(folder or "", "config.json").stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def continued(self, ranks: int) -> list:
        """Returns the command that continues the run on `ranks` ranks.

        If the run has not written its folder, the command begins the run. One rank has no --shard, because weft would
        reject it.
        """
        command = self._command
        if ranks == 1 and any(argument.split("=")[0] == "--shard" for argument in command):
            command = [*command, "--shard=none"]  # the last flag of a name counts
        if "--resume" in command or self._identity() in (None, self._before):
            return command
        return [argument for argument in command if argument.split("=")[0] not in OVERWRITE] + ["--resume"]
