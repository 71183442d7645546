"""Clients that speak TLS: curl, and WebSockets. Arguments: PORT, and the file with the certificate that they trust."""

import asyncio
import json
import ssl
import subprocess
import sys

import websockets

from checks import check, end

port, certificate = sys.argv[1:3]
base = f"https://localhost:{port}"
PATIENCE = 120


def curl(*arguments, data=None, trusts=True):
    """The exit code and what was printed."""
    words = ["curl", "--silent", "--max-time", str(PATIENCE), *arguments]
    if trusts:
        words[1:1] = ["--cacert", certificate]
    result = subprocess.run(words, input=data, capture_output=True)
    return result.returncode, result.stdout.decode()


def requests():
    check("PUT", curl("-X", "PUT", f"{base}/a.json", "-d", "1"), (0, "1"))
    check("GET", curl(f"{base}/a.json"), (0, "1"))
    check("IPv4", curl("--ipv4", f"{base}/a.json"), (0, "1"))
    long = json.dumps("x" * 3_000_000)
    check("a long body", curl("-T", "-", f"{base}/long.json", data=long.encode()), (0, long))
    check("TLS 1.2", curl("--tls-max", "1.2", f"{base}/a.json"), (0, "1"))
    check("TLS 1.3", curl("--tlsv1.3", f"{base}/a.json"), (0, "1"))
    check("TLS 1.1", curl("--tls-max", "1.1", f"{base}/a.json")[1], "")
    check("no TLS", curl(f"http://localhost:{port}/a.json")[1], "")
    check("a certificate that is not trusted", curl(f"{base}/a.json", trusts=False)[0], 60)


async def socket():
    context = ssl.create_default_context(cafile=certificate)
    socket = await websockets.connect(
        f"wss://localhost:{port}/.ws?v=5&ns=tls", ssl=context, max_size=None,
        open_timeout=PATIENCE)
    check("hello", json.loads(await socket.recv())["d"]["t"], "h")
    return socket


async def request(socket, number, action, body):
    await socket.send(json.dumps({"t": "d", "d": {"r": number, "a": action, "b": body}}))
    messages = []
    while not messages or "r" not in messages[-1]:
        text = await asyncio.wait_for(socket.recv(), PATIENCE)
        messages.append(json.loads(text)["d"])
    return messages


async def sockets():
    listener, writer = await socket(), await socket()
    answers = await request(listener, 1, "q", {"p": "/room", "h": ""})
    check("listen", answers[-1]["b"]["s"], "ok")
    for number in range(1, 21):
        answers = await request(writer, number, "p", {"p": "/room", "d": number})
        check("put", answers[-1]["b"]["s"], "ok")
        push = json.loads(await asyncio.wait_for(listener.recv(), PATIENCE))["d"]
        check("event", push["b"], {"p": "room", "d": number})
    await request(listener, 2, "o", {"p": "/left", "d": True})
    await request(writer, 21, "q", {"p": "/left", "h": ""})
    await listener.close()
    push = json.loads(await asyncio.wait_for(writer.recv(), PATIENCE))["d"]
    check("what was registered for the end", push["b"], {"p": "left", "d": True})
    await writer.close()


requests()
asyncio.run(sockets())
end("tls")
