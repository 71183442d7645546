"""Long polling in a headless Chromium, from a page of another origin: scripts in a frame, as the JavaScript client has
them, and the frame whose end is that of the session."""

import http.server
import json
import os
import sys
import threading
import time
import urllib.request

from playwright.sync_api import sync_playwright

from checks import check, end

port = sys.argv[1]

PAGE = """<!DOCTYPE html><body><script>
const base = "http://127.0.0.1:PORT/.lp?";
const frame = document.createElement("iframe");
document.body.appendChild(frame);
const inner = frame.contentWindow.document;
inner.open(); inner.write("<html><body></body></html>"); inner.close();
const state = {serial: 0, segment: 0, segments: [], outstanding: 0, answers: {}, next: 0, messages: [], failures: 0};
let key, leaving;

function run(items, loaded) {
  const script = inner.createElement("script");
  script.async = true;
  script.src = base + items;
  script.onload = () => { script.remove(); loaded(); };
  script.onerror = () => { state.failures += 1; };
  inner.body.appendChild(script);
}

function poll() {
  while (key && !state.closed && state.outstanding < (state.segments.length ? 2 : 1)) {
    let items = key + "&ser=" + ++state.serial + "&ns=browser";
    for (let count = 0; state.segments.length && items.length < 1800 && count < 1; count += 1) {
      const segment = state.segments.shift();
      items += `&seg${count}=${segment.number}&ts${count}=${segment.total}&d${count}=${segment.data}`;
    }
    state.outstanding += 1;
    run(items, () => { state.outstanding -= 1; poll(); });
  }
}

window.pLPCommand41 = (command, first, second) => {
  if (command === "start") {
    key = "id=" + first + "&pw=" + second;
    // This script is still running.
    setTimeout(() => {
      leaving = document.createElement("iframe");
      leaving.onload = () => { state.hasFrame = true; };
      leaving.src = base + "dframe=t&" + key;
      document.body.appendChild(leaving);
      poll();
    }, 0);
  } else if (command === "close") { state.closed = true; }
};
window.pRTLPCB41 = (number, messages) => {
  state.answers[number] = messages;
  while (state.answers[state.next]) {
    state.messages.push(...state.answers[state.next]);
    delete state.answers[state.next];
    state.next += 1;
  }
};

function send(message) {
  let bytes = "";
  for (const byte of new TextEncoder().encode(JSON.stringify(message))) bytes += String.fromCharCode(byte);
  const data = btoa(bytes).replace(/[+]/g, "-").replace(/[/]/g, "_").replace(/=/g, ".");
  const parts = data.match(/.{1,1840}/g);
  for (const part of parts) state.segments.push({number: state.segment++, total: parts.length, data: part});
  poll();
}
let number = 0;
function request(action, body) { send({t: "d", d: {r: ++number, a: action, b: body}}); }
function leave() { state.closed = true; leaving.remove(); }
run("start=t&ser=77&cb=41&v=5&ns=browser", () => {});
</script></body>"""


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(PAGE.replace("PORT", port).encode())

    def log_message(self, *_):
        pass


def rest(method, path, value=None):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}.json?ns=browser", method=method,
        data=None if value is None else json.dumps(value).encode())
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or b"null")


def eventually(what, read, expected):
    for _ in range(6_000):
        value = read()
        if value == expected:
            break
        time.sleep(0.02)
    check(what, value, expected)


pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
threading.Thread(target=pages.serve_forever, daemon=True).start()
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(
        executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"])

    def open_page():
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto(f"http://localhost:{pages.server_port}/")
        page.wait_for_function("state.messages.length > 0 && state.hasFrame")
        check("hello", page.evaluate("state.messages.shift().d.t"), "h")
        return page

    def messages(page, count):
        page.wait_for_function(f"state.messages.length >= {count}")
        return [message["d"] for message in page.evaluate(f"state.messages.splice(0, {count})")]

    OK = {"s": "ok", "d": ""}
    page = open_page()
    page.evaluate("request('q', {p: '/a', h: ''})")
    check("listen", messages(page, 1), [{"r": 1, "b": {"s": "ok", "d": {}}}])
    for value in ["é😀 </script> \u2028 ]);", {"k": [1, True]}, "x" * 30_000]:
        page.evaluate("value => request('p', {p: '/a', d: value})", value)
        push, answer = messages(page, 2)
        check("push", push, {"a": "d", "b": {"p": "a", "d": value}})
        check("answer", answer["b"], OK)
        check("value", rest("GET", "/a"), value)
    rest("PUT", "/a", "other")
    check("push of another's write", messages(page, 1), [{"a": "d", "b": {"p": "a", "d": "other"}}])
    page.evaluate("for (let i = 0; i < 300; i += 1) request('p', {p: '/many/' + i, d: i})")
    check("answers in order", [message["r"] for message in messages(page, 300)], list(range(5, 305)))
    check("many", len(rest("GET", "/many")), 300)

    page.evaluate("request('o', {p: '/left', d: 'frame'})")
    check("registration", messages(page, 1)[0]["b"], OK)
    page.evaluate("leave()")
    eventually("the frame's end is that of the session", lambda: rest("GET", "/left"), "frame")
    check("no script failed", page.evaluate("state.failures"), 0)

    other = open_page()
    other.evaluate("request('o', {p: '/left', d: 'page'})")
    check("registration", messages(other, 1)[0]["b"], OK)
    other.close()
    eventually("and so is the page's", lambda: rest("GET", "/left"), "page")
    browser.close()
end("long polling in Chromium")
