"""Container without an engine: namespaces, mounts, capabilities and users of a container, as root.

A command runs as process 1 of namespaces of its own for processes and mounts, with the capabilities
that a container engine would give it and no way to gain more. It shares the file system of this
machine, except for the folders that are mounted, and the network.
"""

import os
import shlex
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import Final

TOOLS: Final = ("unshare", "setpriv", "mount")
PROGRAMS: Final = (Path(os.path.realpath(sys.executable)).parents[1], Path(__file__).parents[2])
"""Interpreter and checkout of the tests, which all users of a container can read.

They may lie in a private folder, such as the home of root, or below one that is mounted over.
"""


def reason_without() -> str:
    """Return why no container can be made here; empty: one can."""
    if os.geteuid() != 0:
        return "only root can make namespaces and change users"
    missing = [tool for tool in TOOLS if which(tool) is None]
    return f"{', '.join(missing)} is missing" if missing else ""


def contained(
    command: Sequence[str], mounts: Mapping[str, Path], capabilities: Sequence[str], user: str
) -> list[str]:
    """Return the command line that runs a command in a container.

    Args:
        command: program and arguments.
        mounts: files and folders of this machine, by their paths in the container.
        capabilities: names of the capabilities that it starts with, as in a compose file.
        user: `UID:GID` that it starts as.
    """
    lines = ["set -e", "mount --make-rprivate /"]
    hidden = {"/var/lib": "0755", "/run": "0755", "/tmp": "1777"}
    for closed in filter(None, map(_closed_parent, PROGRAMS)):
        if not any(Path(closed).is_relative_to(folder) for folder in hidden):
            hidden[closed] = "0755"
    shown = {
        str(place): place
        for place in PROGRAMS
        if any(place.is_relative_to(folder) for folder in hidden)
    }
    mounts = {**shown, **mounts}
    # Sources of mounts may lie below the hidden folders, so those are kept aside first.
    kept = "/mnt/kept"
    lines.append("mount -t tmpfs -o mode=0700 tmpfs /mnt")
    for number, place in enumerate(mounts.values()):
        target = f"{kept}-{number}"
        make = f"mkdir {target}" if place.is_dir() else f"touch {target}"
        lines += [make, f"mount --bind {shlex.quote(str(place))} {target}"]
    lines += [
        f"mount -t tmpfs -o mode={mode} tmpfs {shlex.quote(folder)}"
        for folder, mode in hidden.items()
    ]
    # New names in /etc stay in the container.
    layers = "lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work"
    lines += ["mkdir /mnt/upper /mnt/work", f"mount -t overlay -o {layers} overlay /etc"]
    for number, (inside, place) in enumerate(mounts.items()):
        where = shlex.quote(inside)
        make = (
            f"mkdir -p {where}"
            if place.is_dir()
            else f"mkdir -p {shlex.quote(str(Path(inside).parent))}; touch {where}"
        )
        lines += [make, f"mount --bind {kept}-{number} {where}"]
    lines += ["umount --lazy /mnt", "mkdir -p /var/lib/nni", "cd /var/lib/nni"]
    uid, gid = user.split(":")
    given = ",".join(["-all", *(f"+{name.lower()}" for name in capabilities)])
    privileges = [
        *("setpriv", "--no-new-privs", "--inh-caps=-all", f"--bounding-set={given}"),
        *(["--clear-groups"] if uid == "0" else ["--reuid", uid, "--regid", gid, "--groups"]),
        *([] if uid == "0" else ["65531,65533"]),
    ]
    lines.append(f"exec {shlex.join([*privileges, *command])}")
    return [
        *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *("bash", "-c", "\n".join(lines)),
    ]


def _closed_parent(place: Path) -> str:
    """Return the outermost folder above a place that other users cannot enter; empty: none."""
    closed = (
        str(folder)
        for folder in reversed(place.parents)
        if not stat.S_IMODE(folder.stat().st_mode) & stat.S_IXOTH
    )
    return next(closed, "")
