"""Writes to a disk over libnbd, then asks for nothing until the connection ends.

Argument: the URI of the disk. Prints "written" when a write is acknowledged; when the connection has
ended, "closed" if the server said so and "dead" if it just went; and what is found there over another
connection, "kept" or "lost".
"""

import sys

import nbd

DATA = b"acknowledged" * 1000


def connect():
    client = nbd.NBD()
    client.set_uri_allow_local_file(True)  # the certificates
    client.connect_uri(sys.argv[1])
    return client


client = connect()
assert client.get_tls_negotiated()
client.pwrite(DATA, 4096)
print("written", flush=True)
try:
    while client.aio_is_ready():
        client.poll(-1)
except nbd.Error as error:
    print(error, file=sys.stderr)
print("closed" if client.aio_is_closed() else "dead", flush=True)
print("kept" if connect().pread(len(DATA), 4096) == DATA else "lost", flush=True)
