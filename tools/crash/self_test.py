#!/usr/bin/env python3
"""Tests two parts of tools/crash_test: the comparison of folders, and the model of a disk."""

import struct
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from power_cuts import Disk, Log  # noqa: E402
from trainings import compare, contents  # noqa: E402


def _event(wall_time: float, tag: bytes, value: float) -> bytes:
    inside = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(inside)]) + inside
    event = b"\x09" + struct.pack("<d", wall_time) + b"\x10\x03\x2a" + bytes([len(summary)]) + summary
    return struct.pack("<Q", len(event)) + bytes(4) + event + bytes(4)


def _hexadecimal(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def _contents(self, files: dict) -> dict:
        with tempfile.TemporaryDirectory() as folder:
            for name, data in files.items():
                (Path(folder) / name).parent.mkdir(exist_ok=True)
                (Path(folder) / name).write_bytes(data)
            return contents(Path(folder))

    def test_finds_each_difference(self):
        found = self._contents({"a": b"1", "b": b"2", "x/c.tmp": b""})
        wanted = self._contents({"a": b"1", "b": b"3", "d": b""})
        self.assertEqual(compare(found, wanted), ["d is missing", "x is left over", "x/c.tmp is left over", "b differs"])
        self.assertEqual(compare(wanted, wanted), [])

    def test_metrics_may_differ_in_times_only(self):
        line = b'{"step": %d, "seconds": %d, "tokens_per_second": %d}\n'
        first = self._contents({"metrics.jsonl": line % (1, 2, 3)})
        self.assertEqual(first, self._contents({"metrics.jsonl": line % (1, 4, 5)}))
        self.assertNotEqual(first, self._contents({"metrics.jsonl": line % (2, 2, 3)}))
        self.assertNotEqual(first, self._contents({"metrics.jsonl": line % (1, 2, 3) + b"torn"}))

    def test_events_may_differ_in_times_and_speeds_only(self):
        def events(*arguments):
            return self._contents({"events.out.tfevents.weft": _event(*arguments)})

        self.assertEqual(events(1.0, b"loss", 2.0), events(9.0, b"loss", 2.0))
        self.assertNotEqual(events(1.0, b"loss", 2.0), events(1.0, b"loss", 3.0))
        self.assertNotEqual(events(1.0, b"loss", 2.0), events(1.0, b"rate", 2.0))
        self.assertEqual(events(1.0, b"memory", 2.0), events(1.0, b"memory", 3.0))


class PowerCutTest(unittest.TestCase):
    def _after(self, *calls: str) -> tuple:
        """Returns the files after a power cut that loses everything, and after one that keeps names."""
        disk = Disk("/d")
        disk.top.now["old"] = disk.top.synced["old"] = type(disk.top)(False)
        log = Log("\n".join("7 " + call for call in calls), disk, "/")
        for line in log.lines:
            log.apply(line)
        states = []
        for keep_names in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                disk.write_out(Path(folder), keep_names)
                states.append(contents(Path(folder)))
        return tuple(states)

    def setUp(self):
        path, other = _hexadecimal("/d/new"), _hexadecimal("/d/old")
        self.create = f'openat(AT_FDCWD, "{path}", O_WRONLY|O_CREAT|O_EXCL, 0666) = 3<{path}>'
        self.write = f'write(3<{path}>, "{_hexadecimal("abc")}", 3) = 3'
        self.sync = f"fsync(3<{path}>) = 0"
        self.rename = f'rename("{path}", "{other}") = 0'
        self.sync_folder = f"fsync(4<{_hexadecimal('/d')}>) = 0"

    def test_unsynced_bytes_and_names_are_lost(self):
        self.assertEqual(self._after(self.create, self.write), ({"old": b""}, {"old": b"", "new": bytes(3)}))
        self.assertEqual(self._after(self.create, self.write, self.sync), ({"old": b""}, {"old": b"", "new": b"abc"}))
        self.assertEqual(self._after(self.create, self.write, self.sync, self.sync_folder)[0],
                         {"old": b"", "new": b"abc"})

    def test_a_rename_is_durable_when_its_folder_is_synced(self):
        calls = [self.create, self.write, self.sync, self.rename]
        self.assertEqual(self._after(*calls), ({"old": b""}, {"old": b"abc"}))
        self.assertEqual(self._after(*calls, self.sync_folder)[0], {"old": b"abc"})
        self.assertEqual(self._after(self.create, self.write, self.rename, self.sync_folder)[0], {"old": b""})

    def test_calls_that_failed_or_were_interrupted(self):
        head, tail = self.create.split(", O_WRONLY")
        calls = [head + " <unfinished ...>", f"<... openat resumed>, O_WRONLY{tail}",
                 self.create.partition(" = ")[0] + " = -1 EEXIST (File exists)"]
        self.assertEqual(self._after(*calls)[1], {"old": b"", "new": b""})


if __name__ == "__main__":
    unittest.main()
