"""Starts a program with the descriptors that come through standard input, as systemd does."""

import fcntl
import os
import socket
import sys

FIRST = 3

with socket.socket(fileno=0) as given:
    descriptors = socket.recv_fds(given, 1, 100)[1]
away = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 200) for descriptor in descriptors]
for descriptor in descriptors:
    os.close(descriptor)
for place, descriptor in enumerate(away):
    os.dup2(descriptor, FIRST + place)
    os.close(descriptor)
os.open("/dev/null", os.O_RDONLY)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[1], sys.argv[1:])
