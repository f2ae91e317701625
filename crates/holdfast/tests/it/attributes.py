"""Extended attributes, lists, exchanges and files without names, drawn from a seed.

Run on two directories, it must print the same: `attributes.py DIRECTORY SEED STEPS` changes and
tells, `attributes.py DIRECTORY` tells alone.
"""
import ctypes
import errno
import os
import random
import stat
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
# The directory itself is a name like others: what a volume keeps users from its home by changes
# the permissions and the list of that one.
NAMES = [".", "a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a"]
ATTRIBUTES = ["user.a", "user.b", "trusted.c", "security.capability"]
LISTS = ["system.posix_acl_access", "system.posix_acl_default"]
EXCHANGE = 2


def any_list(dice):
    users = [(2, dice.randrange(8), 1000 + user) for user in range(dice.randrange(3))]
    groups = [(8, dice.randrange(8), 2000 + group) for group in range(dice.randrange(2))]
    nobody = 0xFFFFFFFF
    mask = [(16, dice.randrange(8), nobody)] if users or groups or dice.random() < 0.2 else []
    entries = [(1, dice.randrange(8), nobody), *users, (4, dice.randrange(8), nobody), *groups]
    entries += [*mask, (32, dice.randrange(8), nobody)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def any_value(dice, name):
    if name in LISTS:
        return any_list(dice)
    if name == "security.capability":
        return struct.pack("<5I", 0x02000001, 1 << dice.randrange(20), 0, 0, 0)
    return bytes([dice.randrange(256)]) * dice.randrange(400)


def exchange(one, other):
    if libc.renameat2(-100, one.encode(), -100, other.encode(), EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def unnamed(directory, name, mode):
    file = os.open(directory, os.O_TMPFILE | os.O_RDWR, mode)
    try:
        os.write(file, b"without a name")
        os.link(f"/proc/self/fd/{file}", name, follow_symlinks=True)
    finally:
        os.close(file)


def write(name, mode):
    file = os.open(name, os.O_CREAT | os.O_RDWR | os.O_APPEND, mode)
    os.write(file, b"more")
    os.close(file)


def step(dice):
    name, other = dice.choice(NAMES), dice.choice(NAMES)
    attribute = dice.choice(ATTRIBUTES + LISTS * 2)
    mode = dice.choice([0o777, 0o666, 0o640, 0o2775, 0o4755])
    os.umask(dice.choice([0o022, 0o077, 0]))
    value = any_value(dice, attribute)
    acts = [
        lambda: os.setxattr(name, attribute, value),
        lambda: os.setxattr(name, attribute, value),
        lambda: os.setxattr(name, attribute, value, os.XATTR_CREATE),
        lambda: os.setxattr(name, attribute, value, os.XATTR_REPLACE),
        lambda: os.removexattr(name, attribute),
        lambda: os.chmod(name, mode),
        lambda: os.chown(name, 1000 + mode % 3, 2000),
        lambda: os.mkdir(name, mode),
        lambda: write(name, mode),
        lambda: write(name, mode),
        lambda: os.truncate(name, 3),
        lambda: exchange(name, other),
        lambda: unnamed("d" if os.path.isdir("d") else ".", name, mode),
        lambda: os.symlink("a", name),
        lambda: os.unlink(name),
        lambda: os.rename(name, other),
    ]
    act = dice.randrange(len(acts))
    if name == ".":
        act %= 7
    if not os.path.lexists(name):
        act = 7 if name in ("d", "d/e") else dice.choice([8, 8, 12, 13])
    try:
        acts[act]()
        return act, "done"
    except OSError as error:
        return act, errno.errorcode[error.errno]


def may(path, uid, gid):
    """What somebody else may do, by the kernel's word."""
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
        os._exit(sum(right for right in (4, 2, 1) if os.access(path, right)))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def tell(directory, path):
    found = os.lstat(path)
    names = sorted(os.listxattr(path, follow_symlinks=False))
    names = [name for name in names if not name.startswith("trusted.holdfast")]
    values = {name: os.getxattr(path, name, follow_symlinks=False).hex() for name in names}
    rights = [may(path, *who) for who in ((1000, 9), (1001, 2000), (5000, 2000), (5000, 9))]
    way = f"{directory}/{path}"
    if stat.S_ISDIR(found.st_mode):
        print(way, oct(found.st_mode), found.st_uid, found.st_gid, rights, values)
        return True
    links, size = found.st_nlink, found.st_size
    print(way, oct(found.st_mode), found.st_uid, found.st_gid, size, links, rights, values)
    return False


def tell_all():
    """Goes down step by step: after many changes a way can be longer than a path may be."""
    tell("", ".")
    ways, names = ["."], [sorted(os.listdir(), reverse=True)]
    while names:
        if not names[-1]:
            ways.pop()
            names.pop()
            os.chdir("..")
            continue
        name = names[-1].pop()
        if tell(ways[-1], name):
            os.chdir(name)
            ways.append(f"{ways[-1]}/{name}")
            names.append(sorted(os.listdir(), reverse=True))


os.chdir(sys.argv[1])
if len(sys.argv) > 2:
    dice = random.Random(int(sys.argv[2]))
    for number in range(int(sys.argv[3])):
        print(number, *step(dice))
tell_all()
