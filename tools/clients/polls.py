"""Long polling as the JavaScript client does it, without a browser: two polls at most, and segments in their targets."""

import asyncio
import base64
import json
import re


async def get(port, target):
    """The body of the answer to one request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    fields = head.decode().lower().split("\r\n")
    if fields[0].split()[1] != "200":
        raise ConnectionError(f"{fields[0]}: {body.decode()}")
    if "transfer-encoding: chunked" in fields:
        whole = b""
        while True:
            size, _, body = body.partition(b"\r\n")
            if int(size, 16) == 0:
                return whole.decode()
            whole, body = whole + body[:int(size, 16)], body[int(size, 16) + 2:]
    return body.decode()


class Polls:
    """A session: `send` and `recv` take and give messages as the ones of a WebSocket do."""

    SEGMENT = 1840
    # So that none ends before its polls do.
    all = []

    def __init__(self, port, namespace):
        self.port = port
        self.namespace = namespace
        self.serial = 0
        self.segment = 0
        self.segments = []
        self.outstanding = set()
        self.answers = {}
        self.next = 0
        self.is_closed = False
        self.messages = asyncio.Queue()

    @staticmethod
    async def connect(port, namespace, parameters=""):
        polls = Polls(port, namespace)
        Polls.all.append(polls)
        script = await get(port, f"/.lp?start=t&ser=83&v=5&ns={namespace}{parameters}")
        polls.key = "id={}&pw={}".format(*re.match(r"pLPCommand\('start','(\w+)','(\w+)'\);", script).groups())
        polls.take(script)
        polls.poll()
        return polls

    def take(self, script):
        for line in script.splitlines():
            if line.startswith("pLPCommand('close'"):
                self.is_closed = True
            found = re.fullmatch(r"pRTLPCB\((\d+),(\[.*\])\);", line)
            if found:
                self.answers[int(found[1])] = json.loads(found[2])
        while self.next in self.answers:
            for message in self.answers.pop(self.next):
                self.messages.put_nowait(json.dumps(message))
            self.next += 1

    def poll(self):
        """Polls, with as many segments as the target takes."""
        while not self.is_closed and len(self.outstanding) < (2 if self.segments else 1):
            self.serial += 1
            items = ""
            count = 0
            while self.segments and len(self.segments[0][2]) + 30 + len(items) <= 1870:
                number, total, data = self.segments.pop(0)
                items += f"&seg{count}={number}&ts{count}={total}&d{count}={data}"
                count += 1
            task = asyncio.create_task(get(
                self.port, f"/.lp?{self.key}&ser={self.serial}&ns={self.namespace}{items}"))
            self.outstanding.add(task)
            task.add_done_callback(self.ended)

    def ended(self, task):
        self.outstanding.discard(task)
        if task.cancelled() or task.exception():
            self.is_closed = True
            return
        self.take(task.result())
        self.poll()

    async def send(self, text):
        data = base64.urlsafe_b64encode(text.encode()).decode().replace("=", ".")
        parts = [data[start:start + self.SEGMENT] for start in range(0, len(data), self.SEGMENT)]
        for part in parts:
            self.segments.append((self.segment, len(parts), part))
            self.segment += 1
        self.poll()

    async def recv(self):
        return await self.messages.get()

    async def leave(self):
        self.is_closed = True
        await get(self.port, f"/.lp?disconn=t&{self.key}")
