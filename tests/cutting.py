"""A TCP proxy in front of an HTTP server: it notes the requests, and cuts connections in the middle."""

import re
import socket
import struct
import threading
from contextlib import suppress
from typing import NamedTuple

REQUEST = re.compile(rb"(GET|HEAD|PUT|POST|DELETE) (\S+) HTTP/1\.[01]\r\n")
CHUNK = 1 << 16
RESET = struct.pack("ii", 1, 0)  # of SO_LINGER: closing sends a reset


class Cut(NamedTuple):
    """Which request is cut: its method and part of its path, and after how many bytes of the request or response."""

    method: str
    path: str
    num_bytes: int
    of_request: bool = False


class Proxy:
    """A proxy in threads; `close` ends it. Each of its cuts is used once, for the first request that it fits."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        self.clear()
        threading.Thread(target=self._accept, daemon=True).start()

    def clear(self) -> None:
        """Forget requests and cuts."""
        self.requests: list[tuple[str, str]] = []  # methods and paths
        self.cuts: list[Cut] = []

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()

    def count(self, method: str, path: str = "") -> int:
        """Count the requests of a method whose path has a part."""
        return sum(each == method and path in name for each, name in self.requests)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", self._port))
                connection = _Connection(self, client, server)
                for is_request in (True, False):
                    threading.Thread(target=connection.pump, args=(is_request,), daemon=True).start()

    def begin(self, method: str, path: str) -> Cut | None:
        """Note a request; return how it is cut."""
        with self._lock:
            self.requests.append((method, path))
            for cut in self.cuts:
                if cut.method == method and cut.path in path:
                    self.cuts.remove(cut)
                    return cut
        return None


class _Connection:
    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._left: dict[bool, int | None] = {True: None, False: None}  # bytes until the cut, by direction

    def pump(self, is_request: bool) -> None:
        """Pass on one direction."""
        source, sink = (self._client, self._server) if is_request else (self._server, self._client)
        with suppress(OSError):
            while data := source.recv(CHUNK):
                if is_request and (found := REQUEST.match(data)):
                    cut = self._proxy.begin(found[1].decode(), found[2].decode())
                    if cut is not None:
                        self._left[cut.of_request] = cut.num_bytes
                left = self._left[is_request]
                if left is not None:
                    data = data[:left]
                    self._left[is_request] = left - len(data)
                sink.sendall(data)
                if self._left[is_request] == 0:
                    break
        for end in (self._client, self._server):
            with suppress(OSError):
                if self._left[is_request] == 0:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                end.shutdown(socket.SHUT_RDWR)
                end.close()
