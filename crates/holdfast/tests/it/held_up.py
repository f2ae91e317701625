"""Strangers' processes that hold locks of theirs for ever, as a file system never answers.

usage: held_up.py DIRECTORY UID memory|program COUNT

Serves a file system at the directory, itself, and answers no write and no close. Processes of the
user, so many, wait for it:
memory: each maps one of its files, writes to it and maps it in a way that waits for the write, with
its memory locked;
program: each becomes another program, which closes one of its files, with its program locked.
Prints the number of the first once all wait, and ends them, and itself, when its standard input
ends.
"""
import ctypes, mmap, os, signal, struct, sys, threading, time

# With its end, the file system ends, and so does the process.
signal.alarm(300)
directory, uid, how, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
INIT, OPEN, READ, WRITE, LOOKUP, GETATTR, FORGET, FLUSH = 26, 14, 15, 16, 1, 3, 2, 25
FILE_BYTES, KEEP_CACHE, DIRECT_IO, WRITEBACK_CACHE = 65536, 2, 1, 1 << 16

libc = ctypes.CDLL(None, use_errno=True)
fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
if libc.mount(b"held-up", directory.encode(), b"fuse", 0, options) != 0:
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")


def attributes(inode):
    mode = 0o40777 if inode == 1 else 0o100666
    size = 0 if inode == 1 else FILE_BYTES
    return struct.pack("<QQQQQQIIIIIIIIII", inode, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


closes = []


def serve():
    opens = 0
    while True:
        try:
            request = os.read(fuse, 1 << 20)
        except OSError:
            return
        _, code, unique, inode = struct.unpack_from("<IIQQ", request)
        error, answer = 0, b""
        if code == INIT:
            answer = struct.pack("<IIIIHHI", 7, 31, 0, WRITEBACK_CACHE, 16, 12, 65536) + bytes(40)
        elif code == LOOKUP:
            answer = struct.pack("<QQQQII", 2, 0, 3600, 3600, 0, 0) + attributes(2)
        elif code == GETATTR:
            answer = struct.pack("<QII", 3600, 0, 0) + attributes(inode)
        elif code == OPEN:
            answer = struct.pack("<QII", 1, KEEP_CACHE | (DIRECT_IO if opens else 0), 0)
            opens += 1
        elif code == READ:
            answer = bytes(4096)
        elif code == FLUSH and how == "program":
            closes.append(unique)
            continue
        elif code in (WRITE, FORGET):
            continue
        else:
            error = -38
        os.write(fuse, struct.pack("<IiQ", 16 + len(answer), error, unique) + answer)


threading.Thread(target=serve, daemon=True).start()


def hold_memory():
    file = os.open(directory + "/file", os.O_RDWR | os.O_CLOEXEC)
    dirty = mmap.mmap(file, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    dirty[0] = 1
    direct = os.open(directory + "/file", os.O_RDWR | os.O_CLOEXEC)
    mmap.mmap(direct, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)


def hold_program():
    os.open(directory + "/file", os.O_RDWR | os.O_CLOEXEC)
    os.execv("/bin/true", ["true"])


def start():
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        os.close(fuse)
        hold_memory() if how == "memory" else hold_program()
        os._exit(1)
    return child


def wait():
    if how == "program":
        return len(closes) == count
    return all(open(f"/proc/{child}/stat").read().rsplit(")")[1].split()[0] == "D" for child in children)


children = [start() for _ in range(count)]
looks = 0
while looks < 10:
    looks = looks + 1 if wait() else 0
    time.sleep(0.01)
print(children[0], flush=True)
sys.stdin.read()
for child in children:
    os.kill(child, signal.SIGKILL)
for flag in (1, 2):
    libc.umount2(directory.encode(), flag)
os._exit(0)
