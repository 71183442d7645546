"""Clients that security rules decide about: the admin SDK in the place of users, REST, streams and WebSockets.

Arguments: PORT, and
- nothing: the rules are put by the client;
- --rules FILE: the server has the rules of this file, which the client changes;
- --secrets ADMINISTRATORS TOKENS: the files with the server's secrets, for signed tokens; the rules are put."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import queue
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import websockets

from checks import check, end
from dialogue import Dialogue

port = sys.argv[1]
mode, files = (sys.argv[2], sys.argv[3:]) if len(sys.argv) > 2 else ("", [])
base = f"http://127.0.0.1:{port}"
PATIENCE = 120
secret, token_secret = "owner", None
if mode == "--secrets":
    secret, token_secret = (open(file).readline().strip() for file in files)

RULES = {
    "protected": {"$uid": {".read": "auth != null", ".write": "$uid === auth.uid"}},
    "admins": {".read": "auth.uid === 'admin'", ".write": "auth.token.admin === true"},
    "open": {".read": True, ".write": True, "$key": {".validate": "newData.isString() && newData.val().length <= 5"}},
    "gate": {".read": "root.child('isOpen').val() === true"},
    "counter": {".read": True, ".write": True, ".validate": "newData.val() === (data.exists() ? data.val() : 0) + 1"},
    "indexed": {".read": True, ".indexOn": ["n"]},
    "plain": {".read": True},
}


# Requests.

def request(method, path, body=None, token=None, administrator=False, **parameters):
    """The status and the body."""
    query = {"ns": "rules", **parameters}
    if token:
        query["auth"] = token
    headers = {"Authorization": f"Bearer {secret}"} if administrator else {}
    data = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
    asked = urllib.request.Request(
        f"{base}{path}.json?{urllib.parse.urlencode(query)}", method=method, data=data, headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


DENIED = (401, {"error": "Permission denied"})


def put_rules(rules):
    """Waits until they hold where a file has to be read again."""
    text = json.dumps({"rules": rules})
    if mode == "--rules":
        with open(files[0] + ".new", "w") as file:
            file.write(text)
        os.rename(files[0] + ".new", files[0])
        limit = time.monotonic() + PATIENCE
        while request("GET", "/.settings/rules", administrator=True, format="strict")[1] != {"rules": rules}:
            if time.monotonic() > limit:
                check("the file of rules is read again", False)
                return
        status, body = request("PUT", "/.settings/rules", text, administrator=True)
        check("rules of a file stay", (status, files[0] in body["error"]), (409, True))
    else:
        status, _ = request("PUT", "/.settings/rules", text, administrator=True)
        check("rules are put", status, 200)
        check("rules are got back", request("GET", "/.settings/rules", administrator=True), (200, {"rules": rules}))


def part(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def token(uid, lifetime=3600, **claims):
    """An ID token, signed if the server looks at signatures."""
    now = int(time.time())
    payload = {
        "iat": now, "exp": now + lifetime, "aud": "demo", "iss": "https://securetoken.google.com/demo", "sub": uid, "user_id": uid,
        "firebase": {"sign_in_provider": "custom", "identities": {}}, **claims}
    header = {"alg": "HS256" if token_secret else "none", "typ": "JWT"}
    text = ".".join(part(json.dumps(value).encode()) for value in (header, payload))
    signature = hmac.new(token_secret.encode(), text.encode(), hashlib.sha256).digest() if token_secret else b""
    return f"{text}.{part(signature)}"


class Stream:
    """The events of an event stream, as they come."""

    def __init__(self, path, **parameters):
        self.events = queue.Queue()
        asked = urllib.request.Request(
            f"{base}{path}.json?{urllib.parse.urlencode({'ns': 'rules', **parameters})}", headers={"Accept": "text/event-stream"})
        self.answer = urllib.request.urlopen(asked, timeout=PATIENCE)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        event = ""
        for line in self.answer:
            name, _, value = line.decode().strip().partition(": ")
            if name == "event":
                event = value
            elif name == "data" and event != "keep-alive":
                self.events.put((event, json.loads(value)))
        self.events.put(("end", None))

    def next(self):
        return self.events.get(timeout=PATIENCE)


class Client(Dialogue):
    """One WebSocket."""

    @staticmethod
    async def connect(credential=None):
        client = Client()
        client.socket = await websockets.connect(f"ws://127.0.0.1:{port}/.ws?v=5&ns=rules", open_timeout=PATIENCE)
        client.number = 0
        await client.socket.recv()
        if credential:
            _, answer = await client.request("auth", {"cred": credential})
            check("a user signs in", answer["s"], "ok")
        return client

    async def message(self):
        return json.loads(await asyncio.wait_for(self.socket.recv(), PATIENCE))["d"]


REFUSED = {"s": "permission_denied", "d": "Permission denied"}
OK = {"s": "ok", "d": ""}


# What is checked.

def as_user_of_the_admin_sdk():
    """The admin SDK is an administrator, unless it says whom it stands for."""
    os.environ["FIREBASE_DATABASE_EMULATOR_HOST"] = f"127.0.0.1:{port}"
    import firebase_admin
    from firebase_admin import db, exceptions

    def app(name, **override):
        return firebase_admin.initialize_app(
            options={"databaseURL": "https://rules.firebaseio.com", **override}, name=name)

    def denied(call):
        try:
            call()
        except exceptions.FirebaseError as error:
            return (type(error).__name__, "Permission denied" in str(error))
        return None

    refusal = ("UnauthenticatedError", True)
    full = app("administrator")
    user = app("user", databaseAuthVariableOverride={"uid": "user1"})
    other = app("administrator of the rules", databaseAuthVariableOverride={"uid": "x", "token": {"admin": True}})
    nobody = app("nobody", databaseAuthVariableOverride=None)

    db.reference("protected/user2", full).set({"suspicious": True})
    place = db.reference("protected/user1", user)
    place.set({"name": "Ada"})
    check("own place", place.get(), {"name": "Ada"})
    check("own place, as a transaction", place.child("n").transaction(lambda value: (value or 0) + 1), 1)
    foreign = db.reference("protected/user2", user)
    check("place of another one is read", foreign.get(), {"suspicious": True})
    check("query", foreign.order_by_key().limit_to_first(1).get(), {"suspicious": True})
    check("place of another one is not written", denied(lambda: foreign.set(1)), refusal)
    check("nor updated", denied(lambda: foreign.update({"a": 1})), refusal)
    check("nor removed", denied(foreign.delete), refusal)
    check("nor pushed to", denied(lambda: foreign.push(1)), refusal)
    check("nor in a transaction", denied(lambda: foreign.transaction(lambda value: 1)), refusal)
    check("what no rule allows", denied(db.reference("admins", user).get), refusal)
    db.reference("admins", other).set(1)
    check("by a claim", db.reference("admins", full).get(), 1)
    for call in [db.reference("protected/user1", nobody).get, lambda: db.reference("protected/user1", nobody).set(1),
                 db.reference("admins", nobody).get, db.reference("/", nobody).get]:
        check("nobody", denied(call), refusal)
    db.reference("open", nobody).set({"a": "b"})
    check("what is open", db.reference("open/a", nobody).get(), "b")
    check("what is not valid", denied(lambda: db.reference("open/a", nobody).set("too long")), refusal)
    for name in [full, user, other, nobody]:
        firebase_admin.delete_app(name)


def over_rest():
    user = token("u1")
    check("nobody reads", request("GET", "/protected/u1"), DENIED)
    check("nobody writes", request("PUT", "/protected/u1", 1), DENIED)
    check("a user writes", request("PUT", "/protected/u1", {"a": 1}, user), (200, {"a": 1}))
    check("and reads", request("GET", "/protected/u2", token=user)[0], 200)
    check("and not elsewhere", request("PATCH", "/protected", {"u1/b": 1, "u2/b": 1}, user), DENIED)
    check("nothing of it is written", request("GET", "/protected/u1", token=user), (200, {"a": 1}))
    check("shallow", request("GET", "/protected", token=user, shallow="true"), DENIED)
    check("a claim", request("PUT", "/admins", 2, token("u1", admin=True)), (200, 2))
    check("no claim", request("PUT", "/admins", 2, user), DENIED)
    check("an index", request("GET", "/indexed", orderBy='"n"'), (200, None))
    status, body = request("GET", "/plain", orderBy='"n"')
    check("no index", (status, "Index not defined" in body["error"]), (400, True))
    check("rules are not for users", request("GET", "/.settings/rules", token=user)[0], 401)
    if token_secret:
        check("a token that has expired", request("GET", "/protected/u1", token=token("u1", -10))[0], 401)
        forged = token("u1").rsplit(".", 1)[0] + "."
        check("a token without a signature", request("GET", "/protected/u1", token=forged)[0], 401)
    try:
        Stream("/protected/u1")
        check("a stream of nobody", False)
    except urllib.error.HTTPError as error:
        check("a stream of nobody", (error.code, json.loads(error.read())), DENIED)


def races():
    """Of writers that each raise a counter by one, no two get in on the same number."""
    request("DELETE", "/counter", administrator=True)
    written = queue.Queue()

    def write():
        for _ in range(50):
            value = (request("GET", "/counter")[1] or 0) + 1
            status, _ = request("PUT", "/counter", value)
            if status == 200:
                written.put(value)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("each number is written once", sorted(written.queue), list(range(1, written.qsize() + 1)))


async def over_websockets():
    nobody, user = await Client.connect(), await Client.connect(token("u1"))
    for action, body in [("q", {"p": "/protected/u1", "h": ""}), ("g", {"p": "/protected/u1", "q": {}}),
                         ("p", {"p": "/protected/u1", "d": 1}), ("m", {"p": "/protected/u1", "d": {"a": 1}}),
                         ("o", {"p": "/protected/u1", "d": 1})]:
        check(f"nobody: {action}", await nobody.request(action, body), ([], REFUSED))
    check("a user writes", await user.request("p", {"p": "/protected/u1", "d": 1}), ([], OK))
    check("and not elsewhere", await user.request("p", {"p": "/protected/u2", "d": 1}), ([], REFUSED))
    _, answer = await nobody.request("q", {"p": "/plain", "q": {"i": "n", "l": 1, "vf": "l"}, "t": 1, "h": ""})
    check("a listen without an index", answer, {"s": "ok", "d": {"w": ["no_index"]}})
    # What is registered is written when the client leaves, as who it was.
    check("at the end", await user.request("o", {"p": "/protected/u1", "d": "left"}), ([], OK))
    await user.socket.close()
    limit = time.monotonic() + PATIENCE
    while request("GET", "/protected/u1", administrator=True)[1] != "left" and time.monotonic() < limit:
        pass
    check("written at the end", request("GET", "/protected/u1", administrator=True)[1], "left")


async def revocations():
    cancel = lambda path: {"a": "c", "b": {"p": path}}

    def revoked(message):
        """A push that ends a listen, without its reason."""
        return {"a": message["a"], "b": {"p": message["b"]["p"].strip("/")}}

    # By a change of data.
    request("PUT", "/isOpen", True, administrator=True)
    request("PUT", "/gate", 1, administrator=True)
    client, stream = await Client.connect(), Stream("/gate")
    check("what is open", (await client.request("q", {"p": "/gate", "h": ""}))[1]["s"], "ok")
    check("a stream of it", stream.next(), ("put", {"path": "/", "data": 1}))
    request("PUT", "/isOpen", False, administrator=True)
    check("a listen ends when the data that allowed it change", revoked(await client.message()), cancel("gate"))
    check("and a stream", stream.next()[0], "cancel")
    # By a change of rules.
    request("PUT", "/isOpen", True, administrator=True)
    stream = Stream("/gate")
    check("a stream", stream.next(), ("put", {"path": "/", "data": 1}))
    check("it is open again", (await client.request("q", {"p": "/gate", "h": ""}))[1]["s"], "ok")
    put_rules({**RULES, "gate": {".read": False}})
    check("a listen ends when the rules change", revoked(await client.message()), cancel("gate"))
    check("and a stream", stream.next()[0], "cancel")
    put_rules(RULES)
    # By the end of a token, which counts where it is signed.
    if not token_secret:
        return
    user = await Client.connect(token("u1", 3))
    stream = Stream("/protected/u1", auth=token("u1", 3))
    check("a stream of a user", stream.next(), ("put", {"path": "/", "data": "left"}))
    check("a listen of a user", (await user.request("q", {"p": "/protected/u1", "h": ""}))[1]["s"], "ok")
    seen = [await user.message(), await user.message()]
    # The value of the listen came before its answer.
    check("a listen ends with its token", sorted(message["a"] for message in seen), ["ac", "c"])
    check("and the reason is said", [m["b"]["s"] for m in seen if m["a"] == "ac"], ["expired_token"])
    check("a stream ends with its token", stream.next()[0], "auth_revoked")


put_rules(RULES)
if not token_secret:
    as_user_of_the_admin_sdk()
over_rest()
races()
asyncio.run(over_websockets())
asyncio.run(revocations())
end(f"rules {mode}".strip())
