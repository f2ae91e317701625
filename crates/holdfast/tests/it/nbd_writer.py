"""Writes to a disk and reads it back over libnbd until standard input ends.

Arguments: the URI of an empty export, the first part of the disk to use, and how many connections.
Each connection has a part of the disk of its own. A connection that is lost is made again, and what was not answered is asked
for again. Prints how many requests were answered and how many connections were lost. An error that
the server answers, or a read that finds something else, ends it with a complaint.
"""

import os
import random
import sys
import threading
import time

import nbd

URI, FIRST, CONNECTIONS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
PART_BYTES = 1 << 20
RECONNECT_SECONDS = 60

stop = threading.Event()
lock = threading.Lock()
answered = lost = 0


class Part:
    """One connection and what it has written."""

    def __init__(self, number):
        self.start = number * PART_BYTES
        self.model = bytearray(PART_BYTES)
        self.random = random.Random(number)
        self.client = None

    def connected(self):
        deadline = time.monotonic() + RECONNECT_SECONDS
        while self.client is None:
            client = nbd.NBD()
            client.set_uri_allow_local_file(True)  # the certificates
            try:
                client.connect_uri(URI)
                self.client = client
            except nbd.Error:
                assert time.monotonic() < deadline, "nobody takes the connection"
                time.sleep(0.001)
        return self.client

    def ask(self, request):
        """The answer to a request, over as many connections as it takes."""
        global answered, lost
        while True:
            client = self.connected()
            try:
                answer = request(client)
                with lock:
                    answered += 1
                return answer
            except nbd.Error as error:
                if client.aio_is_ready():
                    raise AssertionError(f"refused: {error}")
                self.client = None
                with lock:
                    lost += 1

    def step(self):
        length = self.random.choice([512, 4096, 9999, 1 << 16])
        at = self.random.randrange(PART_BYTES - length)
        kind = self.random.randrange(10)
        if kind < 5:
            data = self.random.randbytes(length)
            flags = nbd.CMD_FLAG_FUA if kind == 0 else 0
            self.model[at : at + length] = data
            self.ask(lambda client: client.pwrite(data, self.start + at, flags))
        elif kind == 5:
            self.ask(lambda client: client.flush())
        else:
            self.check(at, length)

    def check(self, at, length):
        found = self.ask(lambda client: client.pread(length, self.start + at))
        assert found == self.model[at : at + length], f"{self.start + at} + {length} is another"

    def run(self):
        try:
            while not stop.is_set():
                self.step()
            self.check(0, PART_BYTES)
            if self.client is not None:
                self.client.shutdown()
        except BaseException as failure:
            print(f"connection at {self.start}: {failure}", file=sys.stderr, flush=True)
            os._exit(1)


parts = [Part(number) for number in range(FIRST, FIRST + CONNECTIONS)]
threads = [threading.Thread(target=part.run) for part in parts]
for thread in threads:
    thread.start()
sys.stdin.read()
stop.set()
for thread in threads:
    thread.join()
print(f'{{"answered": {answered}, "lost": {lost}}}')
