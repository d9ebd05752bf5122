"""Mode `syscalls`: kills a run before each system call that changes files, by `strace -e inject`."""

import collections
import re
import shutil

from trainings import Broken, Report, Training

CALLS = ["write", "pwrite64", "fsync", "fdatasync", "ftruncate", "openat", "mkdir", "mkdirat", "rename", "renameat",
         "renameat2", "unlink", "unlinkat", "rmdir", "link", "linkat"]
SKIPPED = "strace is not installed; `apt-get install strace` installs it"


def available() -> bool:
    return shutil.which("strace") is not None


def _count(training: Training) -> collections.Counter:
    """Counts the calls of one undisturbed run."""
    training.remove("killed")
    log = training.folder / "strace.log"
    result = training.run("killed", prefix=["strace", "-f", "-o", str(log), "-e", "trace=" + ",".join(CALLS)])
    if result.code != 0:
        raise Broken(f"train {training.name} fails under strace: {result.err.strip()}")
    return collections.Counter(re.findall(r"^\d+ +(\w+)\(", log.read_text(errors="replace"), re.MULTILINE))


def run(trainings: list, stride: int) -> int:
    """Kills before every `stride`-th call of each kind."""
    report = Report({"kills": 0})
    for training in trainings:
        whole = training.undisturbed()
        for call, number in sorted(_count(training).items()):
            for when in range(1, number + 1, stride):
                training.remove("killed")
                inject = f"inject={call}:signal=KILL:when={when}"
                prefix = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject]
                try:
                    result = training.run("killed", prefix=prefix)
                    if result.code == 0:
                        continue  # _count had counted one call more, of another thread
                    report.count("kills")
                    training.complete_and_compare("killed", whole)
                except Broken as error:
                    report.fail(f"train {training.name}, killed before {call} {when} of {number}", error)
    return report.end("syscalls")
