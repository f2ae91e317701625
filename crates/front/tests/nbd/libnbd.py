"""Every command through libnbd, with the answers that the protocol asks for.

Arguments: the URI of an empty, writable export, and its size in bytes.
"""

import errno
import sys

import nbd

URI, SIZE = sys.argv[1], int(sys.argv[2])


def connected():
    client = nbd.NBD()
    client.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    client.connect_uri(URI)
    return client


def refused(code, call):
    """The call fails with this error, and the connection goes on."""
    try:
        call()
    except nbd.Error as error:
        assert error.errnum == code, (error.errnum, code)
    else:
        raise AssertionError("not refused")
    assert client.pread(1, 0) is not None


client = connected()
assert client.get_size() == SIZE
assert client.get_structured_replies_negotiated()
assert client.can_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
assert not client.is_read_only()

# Reads and writes, at any offset and of any length.
for offset, length in [(0, 1), (511, 3), (4095, 4098), (1 << 20, 1 << 20), (5, 32 << 20)]:
    data = bytes((offset + at) & 0xFF for at in range(251)) * (length // 251 + 1)
    data = data[:length]
    client.pwrite(data, offset)
    assert client.pread(length, offset) == data
    chunks = []
    one = lambda buffer, at, status, error: chunks.append((at, len(buffer)))
    assert client.pread_structured(length, offset, one, nbd.CMD_FLAG_DF) == data
    assert chunks == [(offset, length)]

# Chunks arrive once, and cover the request.
seen = bytearray(3 << 20)


def chunk(buffer, offset, status, error):
    assert status == nbd.READ_DATA
    seen[offset : offset + len(buffer)] = buffer


assert bytes(seen) == b"\0" * len(seen)
data = client.pread_structured(len(seen), 0, chunk)
assert bytes(seen) == data

# Zeros, trims, hints, durability.
client.pwrite(b"x" * 70000, 1000, nbd.CMD_FLAG_FUA)
client.zero(60000, 2000, nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FUA)
assert client.pread(70000, 1000) == b"x" * 1000 + b"\0" * 60000 + b"x" * 9000
client.zero(100, 1000)
assert client.pread(101, 1000) == b"\0" * 100 + b"x"
client.trim(100, 62000, nbd.CMD_FLAG_FUA)
assert client.pread(100, 62000) == b"\0" * 100
client.cache(1 << 20, 0)
client.flush()

extents = []
client.block_status(SIZE, 0, lambda name, offset, entries, error: extents.extend(entries))
assert extents == [SIZE, 0], extents

# What the library itself would not send.
client.set_strict_mode(0)
refused(errno.EINVAL, lambda: client.pread(2, SIZE - 1))
refused(errno.EINVAL, lambda: client.trim(2, SIZE - 1))
refused(errno.ENOSPC, lambda: client.pwrite(b"ab", SIZE - 1))
refused(errno.ENOSPC, lambda: client.zero(2, SIZE - 1))
refused(errno.ENOTSUP, lambda: client.zero(512, 0, nbd.CMD_FLAG_FAST_ZERO))
refused(errno.EINVAL, lambda: client.flush(nbd.CMD_FLAG_DF))
refused(errno.EINVAL, lambda: client.pread(1, 0, 1 << 9))

# Many at once, answered each with its own.
pending = []
for at in range(64):
    data = bytes([at]) * 4096
    cookie = client.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(data)), at * 4096)
    pending.append(cookie)
while pending:
    client.poll(-1)
    pending = [cookie for cookie in pending if not client.aio_command_completed(cookie)]
buffers = [nbd.Buffer(4096) for _ in range(64)]
pending = [client.aio_pread(buffer, at * 4096) for at, buffer in enumerate(buffers)]
while pending:
    client.poll(-1)
    pending = [cookie for cookie in pending if not client.aio_command_completed(cookie)]
for at, buffer in enumerate(buffers):
    assert bytes(buffer.to_bytearray()) == bytes([at]) * 4096

# A second connection sees what the first one wrote.
second = connected()
client.pwrite(b"seen", 7)
second.flush()
assert second.pread(4, 7) == b"seen"

# Replies without structure.
plain = nbd.NBD()
plain.set_request_structured_replies(False)
plain.connect_uri(URI)
assert not plain.get_structured_replies_negotiated()
assert plain.pread(4, 7) == b"seen"
assert len(plain.pread(20 << 20, 0)) == 20 << 20

for one in (client, second, plain):
    one.shutdown()
