"""What is left of a file's set-user-id and set-group-id bits, whoever does what to it.

Run in two directories, it must print the same: `privileges.py DIRECTORY`, as root.
"""
import os
import struct
import subprocess
import sys

MODES = (0o6755, 0o6745, 0o2745, 0o2644, 0o4644, 0o6777, 0o2666)
NAME = "file"


def write():
    with open(NAME, "r+b") as file:
        file.write(b"y")


def reserve():
    with open(NAME, "r+b") as file:
        os.posix_fallocate(file.fileno(), 0, 20000)


def acts(who):
    return {
        "to nobody": lambda: os.chown(NAME, -1, -1),
        "of another to nobody": lambda: os.chown(NAME, -1, -1),
        "to its owner": lambda: os.chown(NAME, who, who),
        "to another group": lambda: os.chown(NAME, -1, 1001 if who else 7),
        "to a user alone": lambda: os.chown(NAME, who, -1),
        "write": write,
        "write to another's": write,
        "write over a capability": write,
        "truncate": lambda: os.truncate(NAME, 1),
        "reserve": reserve,
    }


def act_as(who, act):
    """Does it in a process of that user."""
    child = os.fork()
    if child == 0:
        if who:
            os.setgroups([1000, 1001])
            os.setgid(who)
            os.setuid(who)
        try:
            acts(who)[act]()
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


os.chdir(sys.argv[1])
os.chmod(".", 0o777)
for who in (0, 1000):
    for mode in MODES:
        for act in acts(who):
            # Who may write a file may take its bits away by that as well.
            if act == "of another to nobody" and mode & 0o022:
                continue
            if act == "write to another's" and not mode & 0o002:
                continue
            with open(NAME, "wb") as file:
                file.write(b"x" * 9000)
            os.chown(NAME, who, who)
            os.chmod(NAME, mode)
            if act in ("of another to nobody", "write to another's"):
                os.chown(NAME, 5, 5)
                os.chmod(NAME, mode)
            if act == "write over a capability":
                capability = struct.pack("<5I", 0x02000001, 1, 0, 0, 0)
                os.setxattr(NAME, "security.capability", capability)
            error = act_as(who, act)
            if act == "of another to nobody":
                # A volume takes it for the beginning of a write, says yes, and does nothing.
                error = "-"
            # What asks for the mode alone may be told what the kernel remembers of it.
            told = subprocess.check_output(["stat", "-c", "%a", NAME], text=True).strip()
            mode_left = oct(os.stat(NAME).st_mode)
            print(who, oct(mode), act, error, told, mode_left, os.listxattr(NAME))
            os.unlink(NAME)
