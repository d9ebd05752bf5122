"""How a training continues after a failure: the same command with --resume."""

from pathlib import Path


def out_folder(command: list):
    """Returns the value of --out, or None."""
    for at, argument in enumerate(command):
        if argument.startswith("--out="):
            return argument.partition("=")[2]
        if argument == "--out" and at + 1 < len(command):
            return command[at + 1]
    return None


class Run:
    """A run, as it was before its first start."""

    def __init__(self, command: list):
        self._command = command
        self._before = self._identity()

    def _identity(self):
        """Tells apart the config.json of this run and that of an older run, which --overwrite replaces."""
        folder = out_folder(self._command)
        try:
            status = Path(folder or "", "config.json").stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def continued(self) -> list:
        """Returns the command that continues the run, or the same command if the run has not written its folder."""
        if "--resume" in self._command or self._identity() in (None, self._before):
            return self._command
        return [argument for argument in self._command if argument != "--overwrite"] + ["--resume"]
