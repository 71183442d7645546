"""A plain client: the dialogues of the SDKs' protocol, two clients each, over WebSockets and by long polling."""

import asyncio
import base64
import json
import sys

import websockets

from checks import check, end
from dialogue import Dialogue
from polls import Polls

# A machine that does other work as well is slow, and no proof of a fault.
PATIENCE = 120


async def websocket(parameters):
    return await websockets.connect(
        f"ws://127.0.0.1:{sys.argv[1]}/.ws?v=5{parameters}", max_size=None, open_timeout=PATIENCE)


class Client(Dialogue):
    # Which transport new clients have.
    polls = False

    def __init__(self, socket, hello):
        self.socket = socket
        self.session = hello["s"]
        self.number = 0

    @staticmethod
    async def connect(parameters=""):
        namespace = "polls" if Client.polls else "wire"
        if Client.polls:
            socket = await Polls.connect(int(sys.argv[1]), namespace, parameters)
        else:
            socket = await websocket(f"&ns={namespace}{parameters}")
        hello = json.loads(await socket.recv())
        check("hello", (hello["t"], hello["d"]["t"], hello["d"]["d"]["v"]), ("c", "h", "5"))
        return Client(socket, hello["d"]["d"])

    async def leave(self):
        """As a client that is gone without a word, where its transport shows that."""
        if isinstance(self.socket, Polls):
            await self.socket.leave()
        else:
            self.socket.transport.abort()

    async def message(self):
        text = await asyncio.wait_for(self.socket.recv(), PATIENCE)
        if len(text) <= 6 and text.isdigit():
            text = "".join([await self.socket.recv() for _ in range(int(text))])
        return json.loads(text)["d"]


OK = {"s": "ok", "d": ""}
LISTENING = {"s": "ok", "d": {}}
HASH_OF_10 = "+r5aI9HvKKagELki8SYKBk0q7D4="


async def priorities(client):
    """Values and priorities in the forms that the SDKs send."""
    async def get(path):
        return (await client.request("g", {"p": path, "q": {}}))[1]["d"]

    await client.request("p", {"p": "/w/1", "d": {"i": {".sv": {"increment": 5}}, "t": {".sv": "timestamp"}, "x": 1}})
    value = await get("/w/1")
    check("server values", (value["i"], value["x"], value["t"] > 1_700_000_000_000), (5, 1, True))
    await client.request("p", {"p": "/w/2", "d": {".value": "v", ".priority": 7}})
    check("priority by its path", await client.request("p", {"p": "w/2/.priority", "d": 8}), ([], OK))
    check("value and priority", await get("w/2"), {".value": "v", ".priority": 8})
    await client.request("q", {"p": "/w/2", "h": "none"})
    check(
        "push of a priority", await client.request("p", {"p": "/w/2/.priority", "d": None}),
        ([{"a": "d", "b": {"p": "w/2", "d": "v"}}], OK))
    check(
        "merge below and above", await client.request("m", {"p": "/w", "d": {"3": None, "1/x": 2, "2": "new"}}),
        ([{"a": "d", "b": {"p": "w/2", "d": "new"}}], OK))
    check(
        "set above", await client.request("p", {"p": "/", "d": {"w": {"2": {"deep": [1, 2]}}}}),
        ([{"a": "d", "b": {"p": "w/2", "d": {"deep": [1, 2]}}}], OK))
    for what, action, body in [
        ("priority of nothing", "p", {"p": "/nothing/.priority", "d": 1}),
        ("bad key", "p", {"p": "/w", "d": {"a.b": 1}}), ("bad path", "p", {"p": "/a#b", "d": 1}),
        ("bad server value", "p", {"p": "/w", "d": {".sv": "soon"}}),
        ("overlapping merge", "m", {"p": "/w", "d": {"a": 1, "a/b": 2}}), ("bad action", "zz", {"p": "/w"}),
    ]:
        check(what, (await client.request(action, body))[1]["s"], "failure")


async def queries(one, two):
    """Each member of the query object, and several listens at one place."""
    await two.request("p", {"p": "/k", "d": {"10": 0, "a": 1, "b": 1, "c": 2}})
    for query, expected in [
        ({"sp": 1, "sn": "[MAX_NAME]", "sin": False, "i": ".value"}, {"c": 2}),
        ({"ep": 1, "en": "[MIN_NAME]", "ein": False, "i": ".value"}, {"10": 0}),
        ({"sp": 1, "sn": "b", "sin": True, "i": ".value"}, {"b": 1, "c": 2}),
        ({"sp": 1, "sn": "b", "sin": False, "i": ".value"}, {"c": 2}),
        ({"sp": "b", "sin": False, "i": ".key"}, {"c": 2}),
        ({"sp": 1, "ep": 1, "i": ".value"}, {"a": 1, "b": 1}),
        ({"l": 2, "i": ".key"}, {"b": 1, "c": 2}),
        ({"sp": 0, "l": 2, "i": ".value"}, {"10": 0, "a": 1}),
        ({"l": 1, "vf": "l"}, {"10": 0}), ({"sp": "10", "ep": "10", "i": ".key"}, {"10": 0}),
        ({"sp": 5, "i": "x/y"}, None),
    ]:
        check(f"get {query}", (await one.request("g", {"p": "/k", "q": query}))[1]["d"], expected)
    first, last = {"l": 1, "vf": "l"}, {"vf": "r", "l": 1}
    await one.request("q", {"p": "/k", "q": first, "t": 1, "h": ""})
    await one.request("q", {"p": "/k", "q": last, "t": 2, "h": ""})
    await one.request("q", {"p": "/k", "h": ""})
    pushes, answer = await one.request("m", {"p": "/k", "d": {"0": True, "zz": {"d": 1}}})
    check("each listen is served for itself", sorted(push["b"].get("t", 0) for push in pushes), [0, 1, 2])
    check("window of the first", next(push["b"]["d"] for push in pushes if push["b"].get("t") == 1), {"0": True, "10": None})
    await one.request("n", {"p": "/k", "q": last, "t": 2})
    await one.request("n", {"p": "/k"})
    check("only the first is left", await one.request("p", {"p": "/k/zzz", "d": 1}), ([], OK))
    await one.request("n", {"p": "/k", "q": first, "t": 1})


async def identities(client):
    """Signing in and out as the emulator's clients do."""
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = {"iat": 0, "exp": 3600, "sub": "u1", "user_id": "u1", "firebase": {"sign_in_provider": "custom", "identities": {}}}
    token = f"{part({'alg': 'none', 'type': 'JWT'})}.{part(claims)}."
    check("unsigned token", (await client.request("auth", {"cred": token}))[1]["d"]["auth"], claims)
    check("sign out", (await client.request("unauth", {}))[1]["s"], "ok")
    check("no token", (await client.request("auth", {"cred": "x"}))[1]["s"], "invalid_token")
    answer = (await client.request("gauth", {"cred": "owner", "authvar": {"uid": "u1"}}))[1]
    check("owner", (answer["s"], answer["d"]["auth"]), ("ok", None))
    for action, body in [("appcheck", {"token": "t"}), ("unappeck", {}), ("unappcheck", {}), ("s", {"c": {"sdk.js.12-18-0": 1}})]:
        check(action, await client.request(action, body), ([], OK))


async def handshakes():
    """The parameters of the JavaScript, iOS and Android clients, in their orders."""
    for parameters in ["v=5&p=1:2:web:3&ns=wire", "v=5&s=x&ls=y&ac=t&p=1&ns=wire", "v=5&ns=wire&ls=x", "ns=wire&v=5", "v=5&r=f&dframe=t&ns=wire"]:
        async with websockets.connect(f"ws://127.0.0.1:{sys.argv[1]}/.ws?{parameters}") as socket:
            hello = json.loads(await socket.recv())["d"]["d"]
            check(f"hello to {parameters}", (hello["v"], hello["h"], type(hello["ts"])), ("5", f"127.0.0.1:{sys.argv[1]}", int))
    for parameters, status in [("ns=wire", 400), ("v=4&ns=wire", 400), ("v=5&ns=a.b", 403)]:
        try:
            await websockets.connect(f"ws://127.0.0.1:{sys.argv[1]}/.ws?{parameters}")
            check(f"refusal of {parameters}", False)
        except websockets.exceptions.InvalidStatus as error:
            check(f"refusal of {parameters}", error.response.status_code, status)


async def upgrade():
    """A client that changes over from polls to a WebSocket in the middle of its session."""
    def control(kind):
        return json.dumps({"t": "c", "d": {"t": kind, "d": {}}})

    client = await Client.connect()
    await client.request("q", {"p": "/up", "h": ""})
    polls, socket = client.socket, await websocket(f"&s={client.session}&ns=polls")
    client.socket = socket
    check("acknowledgement", await client.message(), {"t": "a", "d": {}})
    await socket.send(control("p"))
    check("ping over the new socket", await client.message(), {"t": "o", "d": {}})
    await socket.send(control("a"))
    await polls.send(control("n"))
    check("end of transmission", json.loads(await polls.recv()), {"t": "c", "d": {"t": "n", "d": {}}})
    while not polls.is_closed:
        await asyncio.sleep(0.01)
    check(
        "the session goes on", await client.request("p", {"p": "/up", "d": 1}),
        ([{"a": "d", "b": {"p": "up", "d": 1}}], OK))


async def dialogues():
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
    await leaving.leave()
    check("departure", await one.message(), {"a": "d", "b": {"p": "here", "d": None}})

    old = await Client.connect()
    await old.request("o", {"p": "/left", "d": 1})
    new = await Client.connect(f"&ls={old.session}")
    check("the connection before", await new.request("g", {"p": "/left", "q": {}}), ([], {"s": "ok", "d": 1}))

    if not Client.polls:
        await one.socket.send("0")
    await one.socket.send(json.dumps({"t": "c", "d": {"t": "p", "d": {}}}))
    check("ping", await one.message(), {"t": "o", "d": {}})

    text = "é" * 40_000
    await two.request("p", {"p": "/long", "d": text})
    check("long message", (await one.request("g", {"p": "/long", "q": {}}))[1]["d"] == text)

    await priorities(two)
    await queries(one, two)
    await identities(await Client.connect())

    for number in range(2_000):
        await two.socket.send(
            json.dumps({"t": "d", "d": {"r": 10_000 + number, "a": "p", "b": {"p": f"/many/{number}", "d": number}}}))
    numbers = [(await two.message())["r"] for _ in range(2_000)]
    check("answers in order", numbers == list(range(10_000, 12_000)))


async def main():
    await dialogues()
    await handshakes()
    Client.polls = True
    await dialogues()
    await upgrade()
    end("WebSockets and long polling")


asyncio.run(main())
