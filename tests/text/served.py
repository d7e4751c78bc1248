"""served: a server on the loopback address, which serves what a mirror, a hub or a web server would."""

import hashlib
import io
import tarfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from workflow_scripts.text.acquisition import Data, main, suffix

COMMIT = "c" * 40


class Server(ThreadingHTTPServer):
    """Serves `files` by path, counts requests, and fails as often as a test wants."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.cuts: list[int] = []
        self.failures = 0
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        server, asked = self.server, self.headers["Range"]
        if self.command == "GET":
            server.requests.append((self.path, asked))
        if server.failures:
            server.failures -= 1
            return self.send_error(503)
        if self.path not in server.files:
            return self.send_error(404)
        content = server.files[self.path]
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if asked and start >= len(content):
            return self.send_error(416)
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("ETag", f'"{sha256(content)}"')
        self.send_header("X-Repo-Commit", COMMIT)  # as the Hugging Face hub does
        self.end_headers()
        if self.command == "GET":
            # cut: the connection ends in the midst of the content
            self.wfile.write(content[start : start + server.cuts.pop(0)] if server.cuts else content[start:])
            self.close_connection = True

    def log_message(self, *_):
        pass


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def acquired(folder: Path, data: Data, **options) -> Path:
    output = folder / f"it{suffix(data)}"
    main(output, folder / "it.json", settings=data, **options)
    return output


def tar(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()
