"""pyrebase4, which names no namespace: the default one serves it."""

import sys
import threading

import pyrebase

from checks import check, end

database = pyrebase.initialize_app({
    "apiKey": "none", "authDomain": "none", "storageBucket": "none",
    "databaseURL": f"http://127.0.0.1:{sys.argv[1]}",
}).database()

database.child("users").child("ada").set({"born": 1815})
check("get", database.child("users").child("ada").get().val(), {"born": 1815})
database.child("users").child("ada").update({"name": "Ada"})
check("update", database.child("users").child("ada").child("name").get().val(), "Ada")
key = database.child("list").push({"n": 1})["name"]
check("push", database.child("list").child(key).get().val(), {"n": 1})
database.child("scores").set({"a": 3, "b": 1, "c": 2})
ordered = database.child("scores").order_by_value().limit_to_last(2).get()
check("query", dict(ordered.val()), {"a": 3, "c": 2})
check("shallow", sorted(database.child("scores").shallow().get().val()), ["a", "b", "c"])
etag = database.child("scores").child("a").get_etag()["ETag"]
check("ETag", bool(etag))
changed = database.child("scores").child("a").conditional_set(5, etag)
check("conditional set", changed, 5)
refused = database.child("scores").child("a").conditional_set(6, etag)
check("conditional set that is refused", refused["value"], 5)

events = []
arrived = threading.Condition()


def note(message):
    with arrived:
        events.append((message["event"], message["path"], message["data"]))
        arrived.notify()


stream = database.child("lobby").stream(note)
with arrived:
    arrived.wait_for(lambda: len(events) >= 1, timeout=30)
database.child("lobby").set({"x": 1})
with arrived:
    arrived.wait_for(lambda: len(events) >= 2, timeout=30)
check("events", events, [("put", "/", None), ("put", "/", {"x": 1})])

database.child("list").remove()
check("remove", database.child("list").get().val(), None)
end("pyrebase4")
