"""One turn of pyrebase4 in the workload `synced`: pyrebase_peer.py URL sets|puts COUNT prints as JSON what it took."""

import json
import os
import sys
import threading
import time

import pyrebase

url, work, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
database = pyrebase.initialize_app({
    "apiKey": "none", "authDomain": "none", "storageBucket": "none", "databaseURL": url,
}).database()
latencies = []


def number():
    # Each call ends the path of its database.
    return database.child("n")


def field(index):
    return database.child("app").child("posts").child(f"{index // 5:020}").child(f"field{index % 5}")


def put(index):
    field(index).set(f"{index:020}")


class Listener:
    """Waits for the values that a stream brings."""

    def __init__(self):
        self.value = None
        self.came = threading.Condition()
        number().stream(self.note)

    def note(self, message):
        with self.came:
            self.value = message["data"]
            self.came.notify()

    def wait(self, value):
        with self.came:
            if not self.came.wait_for(lambda: self.value == value, timeout=60):
                print(f"pyrebase4: {value} has not come within a minute", file=sys.stderr)
                os._exit(1)


if work == "sets":
    number().set(0)
    listener = Listener()
    listener.wait(0)
else:
    # It makes the connection.
    put(0)
start, processor_start = time.perf_counter(), time.process_time()
for index in range(1, count + 1):
    begin = time.perf_counter()
    if work == "sets":
        number().set(index)
        listener.wait(index)
    else:
        put(index)
    latencies.append(time.perf_counter() - begin)
seconds, processor_seconds = time.perf_counter() - start, time.process_time() - processor_start
if work == "puts":
    last = field(count).get().val()
    if last != f"{count:020}":
        sys.exit("pyrebase4: the last put is not there")
print(json.dumps({"seconds": seconds, "processorSeconds": processor_seconds, "latencies": latencies}), flush=True)
# The stream's thread does not end by itself.
os._exit(0)
