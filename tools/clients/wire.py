"""A plain WebSocket client: the dialogues of the SDKs' protocol, two clients each."""

import asyncio
import json
import sys

import websockets

from checks import check, end


class Client:
    def __init__(self, socket, hello):
        self.socket = socket
        self.session = hello["s"]
        self.number = 0

    @staticmethod
    async def connect(parameters=""):
        socket = await websockets.connect(
            f"ws://127.0.0.1:{sys.argv[1]}/.ws?v=5&ns=wire{parameters}", max_size=None)
        hello = json.loads(await socket.recv())
        check("hello", (hello["t"], hello["d"]["t"], hello["d"]["d"]["v"]), ("c", "h", "5"))
        return Client(socket, hello["d"]["d"])

    async def message(self):
        text = await asyncio.wait_for(self.socket.recv(), 30)
        if len(text) <= 6 and text.isdigit():
            text = "".join([await self.socket.recv() for _ in range(int(text))])
        return json.loads(text)["d"]

    async def request(self, action, body):
        """The pushes before the answer, and the answer."""
        self.number += 1
        await self.socket.send(
            json.dumps({"t": "d", "d": {"r": self.number, "a": action, "b": body}}))
        pushes = []
        while True:
            message = await self.message()
            if message.get("r") == self.number:
                return pushes, message["b"]
            pushes.append(message)


OK = {"s": "ok", "d": ""}
LISTENING = {"s": "ok", "d": {}}
HASH_OF_10 = "+r5aI9HvKKagELki8SYKBk0q7D4="


async def main():
    one = await Client.connect()
    two = await Client.connect()

    check("listen to nothing", await one.request("q", {"p": "/a", "h": ""}), ([], LISTENING))
    check("put", await two.request("p", {"p": "/a", "d": {"x": 1}}), ([], OK))
    check("push", await one.message(), {"a": "d", "b": {"p": "a", "d": {"x": 1}}})
    check(
        "own write", await one.request("p", {"p": "/a/x", "d": 2}),
        ([{"a": "d", "b": {"p": "a/x", "d": 2}}], OK))
    check("merge", await two.request("m", {"p": "/a", "d": {"x": 3, "y/z": True}}), ([], OK))
    check("push of a merge", await one.message(), {"a": "m", "b": {"p": "a", "d": {"x": 3, "y/z": True}}})
    check("unlisten", await one.request("n", {"p": "/a"}), ([], OK))
    await two.request("p", {"p": "/a", "d": None})
    check("get", await one.request("g", {"p": "/a", "q": {}}), ([], {"s": "ok", "d": None}))

    await two.request("p", {"p": "/n", "d": 10})
    check("known already", await one.request("q", {"p": "/n", "h": HASH_OF_10}), ([], LISTENING))
    check(
        "transaction", await one.request("p", {"p": "/n", "d": 11, "h": HASH_OF_10}),
        ([{"a": "d", "b": {"p": "n", "d": 11}}], OK))
    answer = await two.request("p", {"p": "/n", "d": 12, "h": HASH_OF_10})
    check("stale transaction", answer[1]["s"], "datastale")

    await two.request("p", {"p": "/s", "d": {"a": 1, "b": 2, "c": 3}})
    query = {"l": 2, "vf": "r", "i": ".value"}
    check(
        "window", await one.request("q", {"p": "/s", "q": query, "t": 7, "h": ""}),
        ([{"a": "d", "b": {"p": "s", "d": {"b": 2, "c": 3}, "t": 7}}], LISTENING))
    await two.request("p", {"p": "/s/d", "d": 9})
    check("window, newcomer", await one.message(), {"a": "m", "b": {"p": "s", "d": {"b": None, "d": 9}, "t": 7}})
    await two.request("p", {"p": "/s/c", "d": None})
    check("window, successor", await one.message(), {"a": "m", "b": {"p": "s", "d": {"b": 2, "c": None}, "t": 7}})

    leaving = await Client.connect()
    await one.request("q", {"p": "/here", "h": ""})
    await leaving.request("o", {"p": "/here/me", "d": None})
    await leaving.request("p", {"p": "/here/me", "d": True})
    check("arrival", await one.message(), {"a": "d", "b": {"p": "here/me", "d": True}})
    leaving.socket.transport.abort()
    check("departure", await one.message(), {"a": "d", "b": {"p": "here", "d": None}})

    old = await Client.connect()
    await old.request("o", {"p": "/left", "d": 1})
    new = await Client.connect(f"&ls={old.session}")
    check("the connection before", await new.request("g", {"p": "/left", "q": {}}), ([], {"s": "ok", "d": 1}))

    await one.socket.send("0")
    await one.socket.send(json.dumps({"t": "c", "d": {"t": "p", "d": {}}}))
    check("ping", await one.message(), {"t": "o", "d": {}})

    text = "é" * 40_000
    await two.request("p", {"p": "/long", "d": text})
    check("long message", (await one.request("g", {"p": "/long", "q": {}}))[1]["d"] == text)

    for number in range(2_000):
        await two.socket.send(
            json.dumps({"t": "d", "d": {"r": 10_000 + number, "a": "p", "b": {"p": f"/many/{number}", "d": number}}}))
    numbers = [(await two.message())["r"] for _ in range(2_000)]
    check("answers in order", numbers == list(range(10_000, 12_000)))
    end("WebSockets")


asyncio.run(main())
