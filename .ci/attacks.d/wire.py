"""Bytes on a connection as no well-behaved client sends them: frames of HTTP/2 (RFC 9113) and heads of HTTP/1.1."""

import socket
import struct
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INITIAL_WINDOW_SIZE = 4


def frame(kind, flags, stream, payload=b""):
    """One frame (RFC 9113 section 4.1)."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def length(number):
    """A length with a prefix of seven bits (RFC 7541 section 5.1)."""
    if number < 127:
        return bytes([number])
    rest, coded = number - 127, bytearray([127])
    while rest >= 128:
        coded.append(rest % 128 + 128)
        rest //= 128
    coded.append(rest)
    return bytes(coded)


def field(name, value):
    """A header field without indexing (RFC 7541 section 6.2.2)."""
    name, value = name.encode(), value.encode()
    return b"\x00" + length(len(name)) + name + length(len(value)) + value


def head(address, method, path, kind=None):
    """The header block of a request."""
    block = field(":method", method) + field(":scheme", "http") + field(":authority", address) + field(":path", path)
    return block + field("content-type", kind) if kind else block


def plain(address, patience=10.0):
    """A connection without a byte on it."""
    host, port = address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=patience)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def http2(address, window=None):
    """A connection of HTTP/2 whose client takes so many bytes of each answer."""
    connection = plain(address)
    settings = b"" if window is None else struct.pack(">HI", INITIAL_WINDOW_SIZE, window)
    connection.sendall(PREFACE + frame(SETTINGS, 0, 0, settings))
    return connection


def drained(connection):
    """Reads what comes in the background, so that the daemon can write."""

    def read():
        try:
            while connection.recv(1 << 16):
                pass
        except OSError:
            pass

    threading.Thread(target=read, daemon=True).start()
    return connection


def begun(connection, count, address, method, path, kind=None, flags=END_HEADERS | END_STREAM, first=0):
    """Begins so many requests on one connection of HTTP/2, after so many others."""
    block = head(address, method, path, kind)
    connection.sendall(b"".join(frame(HEADERS, flags, 1 + 2 * number, block) for number in range(first, first + count)))


def post(address, path, body, kind="application/json"):
    """A request of HTTP/1.1 on a connection of its own, whose answer is not read."""
    connection = plain(address)
    accept = "application/json, text/event-stream"
    connection.sendall(
        f"POST {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )
    return connection
