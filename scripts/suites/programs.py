"""Writes numbered records with a program, keeps what was acknowledged, and looks for it afterwards.

    programs.py write PROGRAM DIRECTORY NOTES SECONDS SEED
    programs.py check PROGRAM DIRECTORY NOTES
    programs.py canary

`write` goes on for SECONDS. Now and then it kills the program, starts it again, and compares.
DIRECTORY is the program's alone. NOTES is a file elsewhere, with the number of each record that was
acknowledged. PROGRAM is redis, etcd, lmdb, leveldb or git. One record is written after the other, so
what is found must be 1, 2, 3 and so on without a hole, each as it was written, to the last one that
was acknowledged, or to the one after it, which was under way.
"""
import base64
import glob
import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request

PATIENCE = 60


def value_of(number):
    """Some are small, some are longer than a block."""
    unit = hashlib.sha256(str(number).encode()).hexdigest()
    return unit * (1 + number * number % 97)


def refuse(found, acknowledged):
    """What is wrong with what was found, or nothing."""
    last = max(found, default=0)
    if missing := [number for number in acknowledged if number not in found]:
        return f"{len(missing)} acknowledged records are missing, the first is {missing[0]}"
    if len(found) != last:
        return f"{len(found)} records up to {last}: there is a hole"
    if last > max(acknowledged, default=0) + 1:
        return f"record {last} was never written"
    for number, value in found.items():
        if value != value_of(number):
            return f"record {number} is not as it was written"
    return None


class Process:
    """A program in a group of processes of its own, which ends as a whole. Its session is the
    writer's: whoever kills that one kills all."""

    process = None

    def start(self, *command, **more):
        self.process = subprocess.Popen(command, preexec_fn=os.setpgrp, **more)

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


def answers(ask):
    """Asks until there is an answer."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return ask()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


class Redis(Process):
    """Acknowledges a record when its file of changes is synced."""

    def __init__(self, directory, logs):
        self.directory, self.logs, self.socket = directory, logs, logs + ".socket"

    def begin(self):
        self.start(
            "redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", self.directory,
            "--appendonly", "yes", "--appendfsync", "always", "--save", "",
            "--auto-aof-rewrite-percentage", "30", "--auto-aof-rewrite-min-size", "500kb",
            stdout=open(self.logs, "ab"), stderr=subprocess.STDOUT,
        )
        self.peer = answers(self.connect).makefile("rwb")
        while self.ask("PING") != "PONG":
            time.sleep(0.05)

    def connect(self):
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(PATIENCE)
        peer.connect(self.socket)
        return peer

    def ask(self, *words):
        self.peer.write(b"*%d\r\n" % len(words))
        for word in words:
            self.peer.write(b"$%d\r\n%s\r\n" % (len(word), word.encode()))
        self.peer.flush()
        return self.answer()

    def answer(self):
        line = self.peer.readline().decode().rstrip("\r\n")
        kind, rest = line[:1], line[1:]
        if kind == "*":
            return [self.answer() for _ in range(int(rest))]
        if kind == "$":
            return self.peer.read(int(rest) + 2)[:-2].decode() if rest != "-1" else None
        if kind == "":
            raise ConnectionError("redis is gone")
        return rest if kind in "+:" else line

    def put(self, number):
        answer = self.ask("SET", str(number), value_of(number))
        if answer != "OK":
            raise ConnectionError(answer)

    def all(self):
        names = self.ask("KEYS", "*")
        values = self.ask("MGET", *names) if names else []
        return {int(name): value for name, value in zip(names, values)}


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


class Etcd(Process):
    """Acknowledges a record when its write-ahead log is synced."""

    def __init__(self, directory, logs):
        self.directory, self.logs = directory, logs

    def begin(self):
        self.url, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self.start(
            "etcd", "--data-dir", self.directory, "--name", "one", "--snapshot-count", "500",
            "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
            "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
            "--initial-cluster", f"one={peers}",
            stdout=open(self.logs, "ab"), stderr=subprocess.STDOUT,
        )
        answers(self.all)

    def ask(self, what, **body):
        asked = urllib.request.Request(f"{self.url}/v3/kv/{what}", json.dumps(body).encode())
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return json.load(answer)

    def put(self, number):
        self.ask("put", key=encoded(f"{number:09}"), value=encoded(value_of(number)))

    def all(self):
        found, start = {}, "0"
        while True:
            page = self.ask("range", key=encoded(start), range_end=encoded("a"), limit=300)
            for pair in page.get("kvs", []):
                start = decoded(pair["key"])
                found[int(start)] = decoded(pair["value"])
            if not page.get("more"):
                return found
            start += "\0"


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def decoded(text):
    return base64.b64decode(text).decode()


class Worker(Process):
    """A library in a process of its own: this file again, which does what it is told by lines."""

    def __init__(self, directory, logs):
        self.directory, self.logs = directory, logs

    def begin(self):
        self.start(
            sys.executable, __file__, "work", type(self).__name__.lower(), self.directory,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(self.logs, "ab"), text=True,
        )
        self.ask("ready")

    def ask(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise ConnectionError("the program is gone")
        return json.loads(answer)

    def put(self, number):
        self.ask(str(number))

    def all(self):
        return {int(number): value for number, value in self.ask("all").items()}

    def stop(self):
        self.process.stdin.close()
        if self.process.wait(PATIENCE) != 0:
            raise ConnectionError("the program did not end well")

    def work(self):
        """What the process does."""
        self.open()
        for line in map(str.strip, sys.stdin):
            if line == "all":
                told = self.stored()
            else:
                told = "ok" if line == "ready" else self.store(int(line))
            print(json.dumps(told), flush=True)
        self.close()


class Lmdb(Worker):
    """Acknowledges a record when its transaction is committed."""

    def open(self):
        import lmdb

        self.environment = lmdb.open(self.directory, map_size=1 << 30)

    def store(self, number):
        with self.environment.begin(write=True) as transaction:
            transaction.put(str(number).encode(), value_of(number).encode())

    def stored(self):
        with self.environment.begin() as transaction:
            return {name.decode(): value.decode() for name, value in transaction.cursor()}

    def close(self):
        self.environment.close()


class Leveldb(Worker):
    """Acknowledges a record that is written with `sync`. Small buffers have it merge all the time."""

    def open(self):
        import plyvel

        self.database = plyvel.DB(
            self.directory, create_if_missing=True, paranoid_checks=True, write_buffer_size=1 << 17
        )

    def store(self, number):
        self.database.put(str(number).encode(), value_of(number).encode(), sync=True)

    def stored(self):
        with self.database.iterator(verify_checksums=True) as pairs:
            return {name.decode(): value.decode() for name, value in pairs}

    def close(self):
        self.database.close()


class Git(Worker):
    """A record is a file in a commit of its own.

    Git syncs files, but not the directories that their names are in. What syncs the directory of a
    branch has the commit acknowledged on any file system.
    """

    def git(self, *words, **more):
        identity = ["-c", "user.name=anybody", "-c", "user.email=anybody@localhost"]
        synced = ["-c", "core.fsync=all", "-c", "gc.auto=200", "-c", "gc.autoDetach=false"]
        command = ["git", "-C", self.directory, *identity, *synced, *words]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, **more)
        return done.stdout.decode()

    def open(self):
        os.environ.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1")
        self.git("init", "--quiet", "--initial-branch=all")
        # A git that was killed leaves these, and says itself that they may go then.
        for lock in glob.glob(f"{self.directory}/.git/**/*.lock", recursive=True):
            os.unlink(lock)
        self.git("reset", "--quiet", "--hard") if self.has_commits() else None

    def has_commits(self):
        return self.git("for-each-ref", "refs/heads/all") != ""

    def store(self, number):
        with open(f"{self.directory}/{number}", "w") as file:
            file.write(value_of(number))
        self.git("add", str(number))
        self.git("commit", "--quiet", "-m", str(number))
        heads = os.open(f"{self.directory}/.git/refs/heads", os.O_RDONLY)
        os.fsync(heads)
        os.close(heads)

    def stored(self):
        if not self.has_commits():
            return {}
        self.git("fsck", "--full", "--strict", "--no-dangling")
        names = self.git("log", "--format=%s").split()
        files = self.git("ls-tree", "--name-only", "all").split()
        if len(names) != len(files):
            return {"0": f"{len(names)} commits of {len(files)} files"}
        asked = "".join(f"all:{name}\n" for name in names)
        lines = self.git("cat-file", "--batch", input=asked.encode()).split("\n")
        return dict(zip(names, lines[1::2]))

    def close(self):
        pass


PROGRAMS = {kind.__name__.lower(): kind for kind in (Redis, Etcd, Lmdb, Leveldb, Git)}


def acknowledged_in(notes):
    """A last line without an end was being written when the writer was killed."""
    with open(notes, "a+") as file:
        file.seek(0)
        return {int(line) for line in file if line.endswith("\n")}


def compare(program, notes):
    """Ends this if something is wrong. The number of the last record."""
    found = program.all()
    if why := refuse(found, acknowledged_in(notes)):
        sys.exit(f"{why}; {len(found)} records were found")
    return max(found, default=0)


def write_until(end, program, notes, number):
    while time.monotonic() < end:
        number += 1
        program.put(number)
        notes.write(f"{number}\n")
        notes.flush()


def write(program, notes, seconds, seed):
    end, dice, kills = time.monotonic() + seconds, random.Random(seed), 0
    with open(notes, "a") as file:
        while True:
            program.begin()
            last = compare(program, notes)
            if time.monotonic() >= end:
                break
            write_until(time.monotonic() + dice.uniform(0.2, 4), program, file, last)
            program.kill()
            kills += 1
    program.stop()
    print(f"{last} records, the program was killed {kills} times")


def check(program, notes):
    program.begin()
    last = compare(program, notes)
    program.stop()
    acknowledged = acknowledged_in(notes)
    print(f"{last} records, {len(acknowledged)} of them acknowledged")
    if not acknowledged:
        sys.exit("nothing was acknowledged")


def canary():
    """Each of these must be refused, and the first two must not."""
    right = {number: value_of(number) for number in range(1, 6)}
    kept = {1, 2, 3, 4, 5}
    if refuse(right, kept) or refuse(right, {1, 2, 3, 4}):
        sys.exit("what is right is refused")
    wrong = [
        ({number: right[number] for number in (1, 2, 3, 4)}, kept),
        ({number: right[number] for number in (2, 3, 4, 5)}, {4, 5}),
        ({**right, 3: right[4]}, kept),
        ({**right, 3: ""}, kept),
        (right, {1, 2, 3}),
        ({}, {1}),
    ]
    for found, acknowledged in wrong:
        if not refuse(found, acknowledged):
            sys.exit(f"{sorted(found)} is taken for right, with {acknowledged} acknowledged")


def main():
    what = sys.argv[1]
    if what == "canary":
        return canary()
    kind, directory = sys.argv[2:4]
    if what == "work":
        return PROGRAMS[kind](directory, None).work()
    notes = sys.argv[4]
    program = PROGRAMS[kind](directory, f"{notes}.{kind}")
    os.makedirs(directory, exist_ok=True)
    try:
        if what == "write":
            write(program, notes, float(sys.argv[5]), int(sys.argv[6]))
        else:
            check(program, notes)
    finally:
        if program.process and program.process.poll() is None:
            program.kill()


main()
