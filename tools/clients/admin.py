"""The admin SDK for Python: reading, writing, queries, transactions, ETags and listening."""

import os
import sys
import threading
import time

os.environ["FIREBASE_DATABASE_EMULATOR_HOST"] = f"127.0.0.1:{sys.argv[1]}"

import firebase_admin
from firebase_admin import db, exceptions

from checks import check, end

firebase_admin.initialize_app(options={"databaseURL": "https://admin.firebaseio.com"})
root = db.reference("/")

# Reading and writing.
check("nothing", root.get(), None)
root.set({"a": 1, "b": {"c": "x"}})
check("set", root.get(), {"a": 1, "b": {"c": "x"}})
check("shallow", root.get(shallow=True), {"a": True, "b": True})
child = root.child("list").push({"n": 1})
check("push", root.child("list").child(child.key).get(), {"n": 1})
check("push of nothing", root.child("list").push().get(), "")
root.update({"b/c": "y", "d": [1, 2]})
check("update of several places", root.get()["d"], [1, 2])
check("update below", root.child("b/c").get(), "y")
root.child("d").delete()
check("delete", root.child("d").get(), None)
root.child("time").set({".sv": "timestamp"})
check("the time", abs(root.child("time").get() / 1000 - time.time()) < 60)
root.child("count").set({".sv": {"increment": 3}})
root.child("count").set({".sv": {"increment": 4}})
check("increments", root.child("count").get(), 7)

# ETags and transactions.
value, etag = root.child("a").get(etag=True)
check("value with an ETag", (value, bool(etag)), (1, True))
check("not changed", root.child("a").get_if_changed(etag), (False, None, None))
check("changed", root.child("a").get_if_changed("other")[:2], (True, 1))
check("set if unchanged", root.child("a").set_if_unchanged(etag, 2)[:2], (True, 2))
check("not set", root.child("a").set_if_unchanged(etag, 3)[:2], (False, 2))
check("transaction", root.child("a").transaction(lambda value: (value or 0) + 1), 3)


def count():
    for _ in range(10):
        root.child("turns").transaction(lambda value: (value or 0) + 1)


threads = [threading.Thread(target=count) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
check("transactions at once", root.child("turns").get(), 40)

# Queries.
dinosaurs = {
    "bruhathkayosaurus": {"height": 25, "ratings": {"pos": 1}},
    "lambeosaurus": {"height": 2.1, "ratings": {"pos": 2}},
    "linhenykus": {"height": 0.6, "ratings": {"pos": 3}},
    "pterodactyl": {"height": 0.6, "ratings": {"pos": 4}},
    "stegosaurus": {"height": 4, "ratings": {"pos": 5}},
    "triceratops": {"height": 3, "ratings": {"pos": 6}},
}
place = root.child("dinosaurs")
place.set(dinosaurs)


def keys(query):
    return list(query.get() or {})


def by_height():
    return place.order_by_child("height")


check(
    "by child", keys(by_height()),
    ["linhenykus", "pterodactyl", "lambeosaurus", "triceratops", "stegosaurus", "bruhathkayosaurus"])
check("the first", keys(by_height().limit_to_first(2)), ["linhenykus", "pterodactyl"])
check("the last", keys(by_height().limit_to_last(2)), ["stegosaurus", "bruhathkayosaurus"])
check("from", keys(by_height().start_at(3.5)), ["stegosaurus", "bruhathkayosaurus"])
check("up to", keys(by_height().end_at(1.5)), ["linhenykus", "pterodactyl"])
check("between", keys(by_height().start_at(2.5).end_at(5)), ["triceratops", "stegosaurus"])
check("equal", keys(by_height().equal_to(0.6)), ["linhenykus", "pterodactyl"])
check("none", keys(by_height().equal_to(99)), [])
check("deeper", keys(place.order_by_child("ratings/pos").limit_to_last(1)), ["triceratops"])
check("by key", keys(place.order_by_key().start_at("p").end_at("s\uf8ff")), ["pterodactyl", "stegosaurus"])
root.child("scores").set({"a": 3, "b": 1, "c": 2})
check("by value", keys(root.child("scores").order_by_value()), ["b", "c", "a"])

# Listening.
events = []
arrived = threading.Condition()


def note(event):
    with arrived:
        events.append((event.event_type, event.path, event.data))
        arrived.notify()


def wait(number):
    with arrived:
        arrived.wait_for(lambda: len(events) >= number, timeout=30)


room = root.child("room")
room.listen(note)
wait(1)
room.set({"x": 1})
room.child("x").set(2)
room.update({"x": 3, "y/z": True})
room.delete()
wait(5)
check(
    "events", events,
    [
        ("put", "/", None), ("put", "/", {"x": 1}), ("put", "/x", 2),
        ("patch", "/", {"x": 3, "y/z": True}), ("put", "/", None),
    ])

# Refusals.
for bad in [{"a.b": 1}, {"$x": 1}, {"": 1}]:
    try:
        root.child("bad").set(bad)
        check(f"{bad} is refused", False)
    except exceptions.InvalidArgumentError as error:
        check(f"{bad} is refused", str(error).startswith("Invalid data; couldn't parse key"))

root.child("kept").set("yes")
end("firebase-admin")
