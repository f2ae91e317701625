"""Tells all of a tree that has to outlive an unmount, or anything else; two trees that are alike are told alike.

    tree.py DIRECTORY            a line for each name: its kind, mode, owner, size, links, times,
                                 attributes with lists, and a sum of its bytes
    tree.py --canary DIRECTORY   makes a tree there, changes one thing after the other, and fails if
                                 one of the changes is not told
"""
import hashlib
import os
import stat
import struct
import sys
import tempfile

PIECE = 1 << 20
# As only the superuser may read everything: the time of the last access stays.
UNNOTICED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NOATIME
# Holdfast's own badge, on the directory that is a home, which no volume shows.
OWN = "trusted.holdfast."


def written(file, size):
    """Where something may be written, as a file system with holes says."""
    at = 0
    while at < size:
        try:
            start = os.lseek(file, at, os.SEEK_DATA)
        except OSError:  # Only a hole is left.
            return
        at = os.lseek(file, start, os.SEEK_HOLE)
        yield start, at


def sum_of_bytes(path, size):
    """Zeros count alike, be they written or a hole, and a piece counts once, however many parts of it
    are written."""
    total, counted = hashlib.sha256(), -1
    zeros = bytes(PIECE)
    file = os.open(path, UNNOTICED)
    try:
        for start, end in written(file, size):
            for at in range(start // PIECE * PIECE, end, PIECE):
                if at == counted:
                    continue
                piece, counted = os.pread(file, PIECE, at), at
                if piece != zeros[: len(piece)]:
                    total.update(at.to_bytes(8, "little") + piece)
    finally:
        os.close(file)
    return total.hexdigest()


def attributes(path, is_root):
    found = {}
    for name in sorted(os.listxattr(path, follow_symlinks=False)):
        if not (is_root and name.startswith(OWN)):
            found[name] = os.getxattr(path, name, follow_symlinks=False).hex()
    return found


def names_in(path):
    directory = os.open(path, UNNOTICED | os.O_DIRECTORY)
    try:
        return sorted(map(os.fsencode, os.listdir(directory)))
    finally:
        os.close(directory)


def walk(root):
    """The directory, and all below it: its path below the root, and one by which it is found at that
    moment, from the working directory. Trees may be deeper than a path, or this program, can be."""
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    os.chdir(root)
    yield b".", b".", os.lstat(b".")
    levels = [(b"", names_in(b"."))]
    while levels:
        above, names = levels[-1]
        if not names:
            levels.pop()
            os.chdir(b"..")
            continue
        name = names.pop()
        path, about = os.path.join(above, name), os.lstat(name)
        yield path, name, about
        if stat.S_ISDIR(about.st_mode):
            os.chdir(name)
            levels.append((path, names_in(b".")))
    os.fchdir(here)
    os.close(here)


def tell(root):
    """A line for each name, by which two trees are compared."""
    first_names, lines = {}, []
    for name, path, about in walk(root):
        kind = stat.S_IFMT(about.st_mode)
        is_directory = kind == stat.S_IFDIR
        line = [
            repr(name),
            f"mode={about.st_mode:o}",
            f"owner={about.st_uid}:{about.st_gid}",
            f"modified={about.st_mtime_ns}",
            f"attributes={attributes(path, name == b'.')}",
        ]
        if not is_directory:
            first = first_names.setdefault((about.st_dev, about.st_ino), name)
            line += [f"size={about.st_size}", f"links={about.st_nlink}", f"same_as={first!r}"]
        if kind in (stat.S_IFCHR, stat.S_IFBLK):
            line.append(f"device={about.st_rdev}")
        if kind != stat.S_IFLNK:  # Whoever reads a link changes when that was.
            line.append(f"accessed={about.st_atime_ns}")
        else:
            line.append(f"target={os.readlink(path)!r}")
        if kind == stat.S_IFREG:
            line.append(f"bytes={sum_of_bytes(path, about.st_size)}")
        lines.append(" ".join(line))
    return sorted(lines)


def put(path, offset, data):
    """Without a trace in the times: what has to be told is the byte."""
    about = os.lstat(path)
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def some_list(mode_of_owner):
    entries = [(1, mode_of_owner, -1), (2, 4, 1000), (4, 4, -1), (16, 4, -1), (32, 4, -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)


def replace_link(name, target):
    """The same directory times before and after: what has to be told is the link."""
    about = os.lstat(".")
    old = os.lstat(name)
    os.unlink(name)
    if stat.S_ISLNK(old.st_mode):
        os.symlink(target, name)
    elif stat.S_ISREG(old.st_mode):
        with open(target, "rb") as source, open(name, "wb") as copy:
            copy.write(source.read())
    else:
        os.mknod(name, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    os.utime(name, ns=(old.st_atime_ns, old.st_mtime_ns), follow_symlinks=False)
    os.utime(".", ns=(about.st_atime_ns, about.st_mtime_ns))


def make_sample():
    with open("file", "wb") as file:
        file.write(b"bytes" * 1000)
        file.truncate(3 * PIECE)
    with open("parts", "wb") as file:
        for part in (0, PIECE // 2):
            file.seek(part)
            file.write(b"part")
    os.link("file", "other-name")
    os.symlink("file", "link")
    os.mkfifo("pipe")
    os.mknod("device", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    os.mkdir("directory")
    os.setxattr("file", "user.one", b"1")
    os.setxattr("file", "system.posix_acl_access", some_list(6))


def canary(place):
    """Every change must be told, and what is no change must not be."""
    changes = {
        "nothing: zeros in a hole": lambda: put("file", 2 * PIECE, b"\0"),
        "nothing: a third part of a piece": lambda: put("parts", PIECE // 4, b"\0"),
        "a byte": lambda: put("file", 7, b"?"),
        "the last byte": lambda: put("file", 3 * PIECE - 1, b"?"),
        "a size": lambda: put("file", 3 * PIECE, b"\0"),
        "a mode": lambda: os.chmod("directory", 0o700),
        "a mode's high bits": lambda: os.chmod("pipe", 0o4644),
        "an owner": lambda: os.chown("pipe", 1, -1),
        "a group": lambda: os.chown("link", -1, 1, follow_symlinks=False),
        "a time": lambda: os.utime("file", ns=(0, os.lstat("file").st_mtime_ns + 1)),
        "a time of access": lambda: os.utime("file", ns=(0, os.lstat("file").st_mtime_ns)),
        "a directory's time": lambda: os.utime("directory", ns=(0, 1)),
        "the root's time": lambda: os.utime(".", ns=(0, 1)),
        "a link's target": lambda: replace_link("link", "pipe"),
        "two files of one": lambda: replace_link("other-name", "file"),
        "another device": lambda: replace_link("device", ""),
        "a name": lambda: os.rename("pipe", "pipe-2"),
        "another link": lambda: os.link("file", "directory/file"),
        "a new directory": lambda: os.mkdir("directory/new"),
        "a missing name": lambda: os.unlink("pipe"),
        "an attribute": lambda: os.setxattr("directory", "user.two", b""),
        "an attribute's value": lambda: os.setxattr("file", "user.one", b"2"),
        "a list": lambda: os.setxattr("file", "system.posix_acl_access", some_list(4)),
        "a missing attribute": lambda: os.removexattr("file", "user.one"),
    }
    missed = []
    for name, change in changes.items():
        with tempfile.TemporaryDirectory(dir=place) as sample:
            os.chdir(sample)
            make_sample()
            before = tell(sample)
            change()
            if (tell(sample) == before) != name.startswith("nothing"):
                missed.append(name)
            os.chdir(place)
    return missed


def main():
    if sys.argv[1] == "--canary":
        missed = canary(os.path.realpath(sys.argv[2]))
        for name in missed:
            print(f"tree.py tells wrongly whether it was changed: {name}", file=sys.stderr)
        sys.exit(bool(missed))
    for line in tell(sys.argv[1]):
        print(line)


main()
