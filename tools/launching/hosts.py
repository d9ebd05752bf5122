"""Machines of a host file: a dictionary from a machine's name to its number of slots. A slot holds one rank."""

import re
import socket
import subprocess
from pathlib import Path

CONNECT_SECONDS = 10


class BadFile(Exception):
    pass


def read(path: str) -> dict:
    """Reads lines such as "node1 slots=2". Without slots a machine has one. '#' starts a comment."""
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"can't read {path}: {getattr(error, 'strerror', None) or error}") from None
    machines = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"([\w.:-]+)(?:\s+slots\s*=\s*(\d+))?", line)
        if match is None:
            raise BadFile(f"{path}, line {number}: got '{line}', wanted a name and slots, such as 'node1 slots=2'")
        host, slots = match[1], int(match[2] or 1)
        if slots < 1:
            raise BadFile(f"{path}, line {number}: {host} has 0 slots, wanted at least 1")
        machines[host] = machines.get(host, 0) + slots
    if not machines:
        raise BadFile(f"{path} names no machine")
    return machines


def _is_this_machine(host: str) -> bool:
    return host in ("localhost", "127.0.0.1", "::1", socket.gethostname(), socket.gethostname().partition(".")[0])


def unreachable(machines) -> dict:
    """Returns the machines that don't answer to ssh, each with the last line of its error."""
    asked = {}
    for host in machines or {}:
        if not _is_this_machine(host):
            command = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}", host, "true"]
            try:
                asked[host] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                               stderr=subprocess.PIPE, text=True)
            except OSError as error:
                return {host: f"can't start ssh: {error.strerror}"}
    silent = {}
    for host, process in asked.items():
        try:
            error = process.communicate(timeout=2 * CONNECT_SECONDS)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            error = process.communicate()[1] + f"no answer within {2 * CONNECT_SECONDS} s"
        if process.returncode != 0:
            silent[host] = (error.strip() or f"ssh ended with exit code {process.returncode}").splitlines()[-1]
    return silent


def _same(host: str, name: str) -> bool:
    """Reports whether the machine `host` of a host file calls itself `name`. One of them may lack the domain."""
    is_address = re.fullmatch(r"[\d.]+|.*:.*", host)
    return host == name or (not is_address and host.partition(".")[0] == name.partition(".")[0])


def without_dead_rank(machines, host):
    """Returns `machines` without the slot of a rank that died on `host`. `host` is None if it is not known."""
    if machines is None:
        return None
    left = dict(machines)
    for name in machines:
        if host is not None and _same(name, host):
            left[name] -= 1
            if left[name] == 0:
                del left[name]
            break
    return left
