"""Mode `power`: a power cut after each change of the run's folder, imitated by dropping what was not synced.

strace logs every change of files. This mode replays the log on a model of a file system, which knows each file's bytes
and each folder's names at the last fsync. After each change, the mode writes the model out in two ways and resumes:

- "nothing": bytes and names that were not synced are lost.
- "names": names are kept, but bytes that were not synced are zeros. File systems that write names first do so.
"""

import re
import shutil
from pathlib import Path

from trainings import Broken, Report, Training

_CALLS = "openat,write,pwrite64,ftruncate,fsync,fdatasync,mkdir,rename,unlink,unlinkat,rmdir,link"
_KNOWN = set(_CALLS.split(","))
_UNKNOWN = "creat,writev,pwritev,truncate,mkdirat,renameat,renameat2,linkat,symlink,copy_file_range,sendfile,fallocate"
_STRING = r'"((?:\\x[0-9a-f]{2})*)"'


class Node:
    """A file or a folder: its state now, and its state at the last fsync."""

    def __init__(self, is_folder: bool):
        self.is_folder = is_folder
        self.now = {} if is_folder else b""
        self.synced = {} if is_folder else b""

    def sync(self) -> None:
        self.synced = dict(self.now) if self.is_folder else self.now


class Disk:
    """The files below one folder, whose path is absolute."""

    def __init__(self, root: str):
        self.root = root
        self.top = Node(True)

    def inside(self, path: str) -> bool:
        return path == self.root or path.startswith(self.root + "/")

    def find(self, path: str):
        node = self.top
        for name in path[len(self.root):].strip("/").split("/"):
            if name:
                node = node.now.get(name) if node is not None and node.is_folder else None
        return node

    def names(self, path: str) -> dict:
        return self.find(path.rpartition("/")[0]).now

    def write_out(self, folder: Path, keep_names: bool, node=None) -> None:
        node = node or self.top
        folder.mkdir(exist_ok=True)
        for name, child in (node.now if keep_names else node.synced).items():
            if child.is_folder:
                self.write_out(folder / name, keep_names, child)
            else:
                zeros = bytes(max(0, len(child.now) - len(child.synced))) if keep_names else b""
                (folder / name).write_bytes(child.synced + zeros)


def _text(hexadecimal: str) -> bytes:
    return bytes.fromhex(hexadecimal.replace("\\x", ""))


class Log:
    """The system calls in a log of strace, each of which `apply` repeats on the disk."""

    def __init__(self, text: str, disk: Disk, folder: str):
        self.lines = [line for line in self._joined(text) if not re.search(r"\) += -1 ", line)]
        self.disk = disk
        self.folder = folder

    @staticmethod
    def _joined(text: str) -> list:
        """Joins the two halves of calls during which another thread made a call."""
        lines, begun = [], {}
        for line in text.splitlines():
            thread, _, call = line.partition(" ")
            if call.endswith("<unfinished ...>"):
                begun[thread] = call.removesuffix("<unfinished ...>")
            elif match := re.match(r" *<\.\.\. \w+ resumed>(.*)", call):
                lines.append(begun.pop(thread).strip() + match[1])
            else:
                lines.append(call.strip())
        return lines

    def _path(self, text: str) -> str:
        path = _text(text).decode()
        return path if path.startswith("/") else f"{self.folder}/{path}"

    def apply(self, line: str) -> bool:
        """Applies a call to the disk. Reports whether the call changed it."""
        call, _, arguments = line.partition("(")
        strings = re.findall(_STRING, arguments)
        opened = [_text(each).decode() for each in re.findall(r"<((?:\\x[0-9a-f]{2})+)>", arguments)]
        if call in ("write", "pwrite64", "ftruncate", "fsync", "fdatasync"):
            path = opened[0] if opened else ""
        elif call == "unlinkat":
            path = f"{opened[0]}/{_text(strings[0]).decode()}" if opened else self._path(strings[0])
        elif strings:
            path = self._path(strings[0])
        else:
            return False
        if not self.disk.inside(path):
            return False
        if call not in _KNOWN:
            raise Broken(f"the power cut of {call} is not imitated: {line[:200]}")
        return getattr(self, "_" + call, self._remove)(path, strings, arguments)

    def _openat(self, path, _, arguments) -> bool:
        if "O_CREAT" not in arguments and "O_TRUNC" not in arguments:
            return False
        names, name = self.disk.names(path), path.rpartition("/")[2]
        if name not in names:
            names[name] = Node(False)
        elif "O_TRUNC" in arguments:
            names[name].now = b""
        else:
            return False
        return True

    def _write(self, path, strings, _) -> bool:
        node = self.disk.find(path)  # Weft writes every file from its beginning to its end
        node.now += _text(strings[-1])
        return True

    def _pwrite64(self, path, strings, arguments) -> bool:
        node, data = self.disk.find(path), _text(strings[-1])
        offset = int(re.search(r", (\d+)\) += ", arguments)[1])
        node.now = node.now[:offset].ljust(offset, b"\0") + data + node.now[offset + len(data):]
        return True

    def _ftruncate(self, path, _, arguments) -> bool:
        size = int(re.search(r", (\d+)\) += ", arguments)[1])
        node = self.disk.find(path)
        node.now = node.now[:size].ljust(size, b"\0")
        return True

    def _fsync(self, path, *_) -> bool:
        self.disk.find(path).sync()
        return True

    _fdatasync = _fsync

    def _mkdir(self, path, *_) -> bool:
        self.disk.names(path)[path.rpartition("/")[2]] = Node(True)
        return True

    def _rename(self, path, strings, _) -> bool:
        target = self._path(strings[1])
        self.disk.names(target)[target.rpartition("/")[2]] = self.disk.names(path).pop(path.rpartition("/")[2])
        return True

    def _link(self, path, strings, _) -> bool:
        target = self._path(strings[1])
        self.disk.names(target)[target.rpartition("/")[2]] = self.disk.find(path)
        return True

    def _remove(self, path, *_) -> bool:
        del self.disk.names(path)[path.rpartition("/")[2]]
        return True


def _saved_step(line: str, log: Log, pending: list) -> int:
    """Returns the step of the checkpoint that this call made durable, or 0.

    `pending`: the step of the last renamed checkpoint whose folder is not synced yet; this function updates the list.
    """
    if line.startswith("rename("):
        match = re.fullmatch(r".*/checkpoints/(\d+)", log._path(re.findall(_STRING, line)[1]))
        pending[:] = [int(match[1])] if match else pending
    elif line.startswith("fsync(") and pending:
        opened = _text(re.search(r"<((?:\\x[0-9a-f]{2})+)>", line)[1]).decode()
        if opened.endswith("/checkpoints"):
            return pending.pop()
    return 0


def _logged(training: Training) -> str:
    training.remove("box")
    training.path("box").mkdir()
    log = training.folder / "strace.log"
    prefix = ["strace", "-f", "-y", "-xx", "-s", "100000000", "-o", str(log), "-e", f"trace={_CALLS},{_UNKNOWN}"]
    result = training.run("box/run", prefix=prefix)
    if result.code != 0:
        raise Broken(f"train {training.name} fails under strace: {result.err.strip()}")
    return log.read_text()


def run(trainings: list, stride: int) -> int:
    """Cuts the power after every `stride`-th change."""
    report = Report({"cuts": 0})
    for training in trainings:
        whole = training.undisturbed()
        disk = Disk(str(training.path("box").resolve()))
        log = Log(_logged(training), disk, str(training.folder.resolve()))
        changes, saved, pending = 0, 0, []
        for line in log.lines:
            if not log.apply(line):
                continue
            saved = max(saved, _saved_step(line, log, pending))
            changes += 1
            if changes % stride != 0:
                continue
            for keep_names in (False, True):
                shutil.rmtree(training.path("box"))
                disk.write_out(training.path("box"), keep_names)
                report.count("cuts")
                try:
                    result = training.complete_and_compare("box/run", whole)
                    match = re.search(r"resumed after step (\d+)", result.err)
                    if int(match[1] if match else 0) < saved:
                        raise Broken(f"step {saved} was saved, but is lost")
                except Broken as error:
                    kept = "names" if keep_names else "nothing"
                    call = line.partition("(")[0]
                    report.fail(f"train {training.name}, cut after change {changes} ({call}, {kept} kept)", error)
    return report.end("power")
