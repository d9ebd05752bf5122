"""Mode `full`: limits on file sizes, a full disk, a read-only folder, and a folder that vanishes during the run."""

import os
import resource
import shlex
import shutil
import signal
import subprocess
import time

from trainings import Broken, Report, Training, checkpoint_steps, compare, contents
from trainings import run as run_command

_LONG = ["--steps=8000", "--checkpoint-every=2000", "--eval-every=8000"]  # 2000 steps take 50 ms


def _expect_error(result) -> None:
    if result.code < 0 or result.code > 128:
        raise Broken(f"ended by a signal, exit code {result.code}")
    if result.code != 0 and "weft" not in result.err:
        raise Broken(f"exit code {result.code} without a message: {result.err.strip()}")


def _limits(training: Training, whole: dict, report: Report) -> None:
    """Runs under limits of the file size around the size of each file."""
    sizes = {path.stat().st_size for path in training.path("whole").rglob("*") if path.is_file()}
    limits = {0, 1, 64, 1000, 10000} | sizes | {size - 1 for size in sizes if size > 0} | {size // 2 for size in sizes}
    for limit in sorted(limits):
        training.remove("full")
        report.count("file size limits")
        try:
            _expect_error(training.run(
                "full", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
            training.complete_and_compare("full", whole)
        except Broken as error:
            report.fail(f"train {training.name}, files of at most {limit} bytes", error)


def _mounts() -> bool:
    """Reports whether this user may mount file systems that no other process sees."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "-o", "size=64k", "none", "/mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _in_mounts(training: Training, mount: str, out: str, *more: str, after: str = ":"):
    """Runs the training after the command `mount`, in a mount namespace of its own, and then the command `after`."""
    script = f"{mount} || exit 99; {shlex.join(training.command(out, *more))}; code=$?; {after}; exit $code"
    return run_command(["unshare", "--mount", "sh", "-c", script], training.folder)


def _full_disks(training: Training, whole: dict, report: Report) -> None:
    """Runs in file systems of increasing size: the first is too small for config.json, the last is large enough."""
    bytes_in_use = sum(path.stat().st_size + 4096 for path in training.path("whole").rglob("*"))
    for size in range(4096, 2 * bytes_in_use, max(4096, bytes_in_use // 16)):
        training.remove("full")
        training.remove("disk")
        training.path("disk").mkdir()
        report.count("full disks")
        mount = f"mount -t tmpfs -o size={size} none disk"
        try:
            result = _in_mounts(training, mount, "disk/run", after="cp -a disk/run full")
            _expect_error(result)
            training.complete_and_compare("full", whole)
        except Broken as error:
            report.fail(f"train {training.name}, disk of {size} bytes", error)


def _read_only(training: Training, report: Report) -> None:
    training.remove("full")
    shutil.copytree(training.path("whole"), training.path("full"))
    before = contents(training.path("full"))
    report.count("read-only folders")
    mount = "mount --bind full full && mount -o remount,ro,bind full"
    try:
        result = _in_mounts(training, mount, "full", "--resume", f"--steps={10**4}")
        _expect_error(result)
        if result.code == 0:
            raise Broken("exit code 0")
        if differences := compare(contents(training.path("full")), before):
            raise Broken("; ".join(differences))
    except Broken as error:
        report.fail(f"train {training.name}, read-only folder", error)


def _stopped_in_the_middle(training: Training) -> subprocess.Popen:
    """Starts a long run, waits until it trains on after its first checkpoint, and stops the process by SIGSTOP."""
    training.remove("full")
    process = training.start("full", *_LONG)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        metrics = training.path("full") / "metrics.jsonl"
        if checkpoint_steps(training.path("full")) and metrics.read_bytes().count(b"\n") > 2001:
            process.send_signal(signal.SIGSTOP)
            if checkpoint_steps(training.path("full")) == [2000]:
                return process
            break
        time.sleep(0.001)
    process.kill()
    process.wait()
    raise Broken("the run could not be stopped between two checkpoints")


def _vanishing(training: Training, report: Report) -> None:
    """Removes the folder during the run, renames it, and puts another run in its place."""
    whole = training.undisturbed(*_LONG)
    for what in ("removed", "renamed", "replaced"):
        report.count("vanishing folders")
        full, moved = training.path("full"), training.path("moved")
        training.remove("moved")
        try:
            process = _stopped_in_the_middle(training)
            other = contents(training.path("whole"))
            os.rename(full, moved)
            if what == "removed":
                shutil.rmtree(moved)
            if what == "replaced":
                shutil.copytree(training.path("whole"), full)
            process.send_signal(signal.SIGCONT)
            code = process.wait(timeout=120)
            if what == "replaced":
                if differences := compare(contents(full), other):
                    raise Broken(f"exit code {code}, and the other run was changed: {'; '.join(differences)}")
            elif full.exists():
                raise Broken(f"exit code {code}, and the folder was made anew with {sorted(os.listdir(full))}")
            if code == 0:
                raise Broken("exit code 0")
            if what != "removed":
                training.complete_and_compare("moved", whole, *_LONG)
        except Broken as error:
            report.fail(f"train {training.name}, folder {what} during the run", error)


def run(trainings: list) -> int:
    report = Report({})
    mounts = _mounts()
    if not mounts:
        print("crash_test: full: skipped full disks and read-only folders: `unshare --mount` is not allowed here")
    for training in trainings:
        whole = training.undisturbed()
        _limits(training, whole, report)
        if mounts:
            _full_disks(training, whole, report)
            _read_only(training, report)
        if training.name == "gpt":  # the other trainings save in the same way
            _vanishing(training, report)
    return report.end("full")
