"""Keeps something of a bare home by a way beside an open descriptor of its own.

usage: ways_in.py UID WAY DIRECTORY ELSEWHERE

clone: a descriptor of a mount of the directory that is mounted nowhere.
overlay, lower: the directory is the upper, or a lower, one of an overlay in a namespace of its own.
descriptors, directory: a thread has it open, or stands in it, with a table or a place of its own.
leader: as `descriptors`, and the first thread has ended.
mount: a thread has a mount namespace of its own, in which the directory is mounted elsewhere.
mapped: has one of its files mapped, and its first thread has ended.
deep directory, deep file, deep place, deep map: has one open, stands in one, or has one mapped,
whose path is longer than the kernel tells.
none: keeps nothing of it, but as many threads that share everything.
Says that it has it, and ends with its standard input.
"""
import ctypes, mmap, os, platform, signal, sys, threading

signal.alarm(300)
uid, (way, directory, elsewhere) = int(sys.argv[1]), sys.argv[2:]
libc = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWUSER, FILES, FS = 0x20000, 0x10000000, 0x400, 0x200
OPEN_TREE, CLOEXEC, PRIVATE, BIND = 428, 0x80000, 1 << 18 | 1 << 14, 1 << 12
EXIT = {"x86_64": 60, "aarch64": 93}[platform.machine()]


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


SET_DUMPABLE = 4


def into_a_namespace_of_users():
    checked(libc.unshare(NEWUSER | NEWNS))
    for name, text in ("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {uid} 1"):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def overlay(options):
    into_a_namespace_of_users()
    checked(libc.mount(b"none", elsewhere.encode(), b"tmpfs", 0, None))
    for name in "lower", "merged":
        os.mkdir(f"{elsewhere}/{name}")
    options = f"lowerdir={elsewhere}/lower{options},userxattr".encode()
    checked(libc.mount(b"none", f"{elsewhere}/merged".encode(), b"overlay", 0, options))


def holds():
    print("has it", flush=True)
    sys.stdin.read()
    os._exit(0)


def thread():
    if way in ("descriptors", "leader"):
        checked(libc.unshare(FILES))
        os.open(directory, os.O_RDONLY)
    elif way == "directory":
        checked(libc.unshare(FS))
        os.chdir(directory)
    elif way == "mount":
        checked(libc.unshare(NEWNS))
        checked(libc.mount(None, b"/", None, PRIVATE, None))
        checked(libc.mount(directory.encode(), elsewhere.encode(), None, BIND, None))
    holds()


if uid != 0:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    # Its namespace is its own to fill in.
    libc.prctl(SET_DUMPABLE, 1)
if way == "clone":
    into_a_namespace_of_users()
    checked(libc.syscall(OPEN_TREE, -100, directory.encode(), 1 | CLOEXEC))
    holds()
elif way == "overlay":
    for name in "upper", "work":
        os.mkdir(f"{directory}/{name}")
    overlay(f",upperdir={directory}/upper,workdir={directory}/work")
    holds()
elif way == "lower":
    overlay(f":{directory}")
    holds()
elif way.startswith("deep "):
    os.chdir(directory)
    for _ in range(30):
        os.mkdir("n" * 200)
        os.chdir("n" * 200)
    if way == "deep directory":
        held = os.open(".", os.O_RDONLY)
    else:
        held = os.open("file", os.O_CREAT | os.O_RDWR)
        os.ftruncate(held, 4096)
    if way == "deep map":
        # Python would keep a descriptor of its own beside what is mapped.
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ, mmap.MAP_SHARED, held, 0)
    if way in ("deep place", "deep map"):
        os.close(held)
    if way != "deep place":
        os.chdir("/")
    holds()
elif way == "mapped":
    file = os.open(f"{directory}/mapped", os.O_CREAT | os.O_RDWR)
    os.ftruncate(file, 4096)
    mapped = mmap.mmap(file, 4096)
    os.close(file)
    # Python keeps a descriptor of its own beside what is mapped.
    for number in os.listdir("/proc/self/fd"):
        if int(number) > 2:
            try:
                os.close(int(number))
            except OSError:
                pass
if way == "none":
    for _ in range(8):
        threading.Thread(target=sys.stdin.read, daemon=True).start()
threading.Thread(target=thread).start()
if way in ("leader", "mapped"):
    libc.syscall(EXIT, 0)
