"""Requests of the SDKs' protocol, and the pushes between them."""

import json


class Dialogue:
    """A client with `socket`, `number` (of its last request) and `message()`, which gives the next message."""

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
