"""A headless Chromium on the data viewer, while another client writes; screenshots are left in a folder."""

import json
import os
import sys
import urllib.parse
import urllib.request

from playwright.sync_api import sync_playwright

from checks import check, end

port, folder = sys.argv[1], sys.argv[2]
base = f"http://127.0.0.1:{port}"
os.makedirs(folder, exist_ok=True)


def rest(method, path, value=None):
    request = urllib.request.Request(
        f"{base}{path}.json?ns=viewer", method=method,
        data=None if value is None else json.dumps(value).encode())
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or b"null")


HOSTILE = "<img src=x onerror=document.title='broken'>"
KEY = HOSTILE.replace(".", "")  # A key has no dot.
rest("PUT", "/users", {
    "ada": {"name": "Ada", "born": 1815, "admin": True},
    "grace": {"name": "Grace", "born": 1906},
    KEY: {"name": HOSTILE},
})
rest("PUT", "/wide", {f"k{number:06}": number for number in range(100_000)})

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(
        executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 1200, "height": 720})
    # A machine that does other work as well is slow, and no proof of a fault.
    page.set_default_timeout(120_000)
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.on("request", lambda request: request.url.startswith((base, "data:")) or wrong.append(request.url))
    page.goto(f"{base}/?ns=viewer")

    def row(path):
        return page.locator(f"[data-path={json.dumps(path, ensure_ascii=False)}]")

    def eventually(what, read, expected=True):
        """Waits for what the page shows; the page's policy forbids that it waits by itself."""
        for _ in range(1500):
            value = read()
            if value == expected:
                break
            page.wait_for_timeout(20)
        check(what, value, expected)

    def shown(path):
        value = row(path).locator(".value")
        return value.inner_text() if value.count() == 1 else None

    def unfold(path):
        row(path).locator(".fold").click()

    page.wait_for_selector('[data-path="/users"]')
    check("folded", row("/users/ada").count(), 0)
    unfold("/users")
    unfold("/users/ada")
    page.wait_for_selector('[data-path="/users/ada/name"]')
    check("a string", row("/users/ada/name").locator(".value").inner_text(), '"Ada"')
    page.screenshot(path=f"{folder}/light.png")

    # Another client writes; the page shows it.
    rest("PUT", "/users/ada/name", "Ada Lovelace")
    eventually("live", lambda: shown("/users/ada/name"), '"Ada Lovelace"')
    rest("PUT", "/users/alan", {"name": "Alan"})
    page.wait_for_selector('[data-path="/users/alan"]')
    rest("DELETE", "/users/alan")
    page.wait_for_selector('[data-path="/users/alan"]', state="detached")

    # Edit, add, remove, each with undo.
    row("/users/ada/born").dblclick()
    page.fill("#value", "1816")
    page.click("#ok")
    page.wait_for_selector("dialog", state="hidden")
    check("edited", rest("GET", "/users/ada/born"), 1816)
    row("/users/grace").hover()
    row("/users/grace").get_by_text("Add").click()
    page.fill("#key", "rank")
    page.fill("#value", '"admiral"')
    page.screenshot(path=f"{folder}/add.png")
    page.click("#ok")
    page.wait_for_selector('[data-path="/users/grace/rank"]')
    check("added", rest("GET", "/users/grace/rank"), "admiral")
    row("/users/ada/admin").click()
    page.keyboard.press("Delete")
    page.wait_for_selector('[data-path="/users/ada/admin"]', state="detached")
    check("removed", rest("GET", "/users/ada/admin"), None)
    for _ in range(3):
        page.click("#undo")
    page.wait_for_selector('[data-path="/users/ada/admin"]')
    page.wait_for_selector('[data-path="/users/grace/rank"]', state="detached")
    check("undone", rest("GET", "/users/ada"), {"name": "Ada Lovelace", "born": 1815, "admin": True})
    eventually("all undone", lambda: page.is_disabled("#undo"))
    row("/users/ada/born").dblclick()
    page.fill("#value", "{oops")
    page.click("#ok")
    check("bad JSON", "no JSON" in page.inner_text("#wrong"))
    page.keyboard.press("Escape")

    # Each dialog has its own fields alone, and the secret is masked.
    def fields():
        names = ["key", "secret", "value"]
        return [name for name in names if page.locator(f"#{name}").is_visible()]

    row("/users/grace").hover()
    for name, expected in [("Add", ["key", "value"]), ("Edit", ["value"]), ("Remove", [])]:
        row("/users/grace").get_by_text(name, exact=True).click()
        eventually(f"the fields of {name}", fields, expected)
        page.keyboard.press("Escape")
    page.click("#sign")
    eventually("the fields of signing in", fields, ["secret"])
    check("masked", page.get_attribute("#secret", "type"), "password")
    page.keyboard.press("Escape")

    # The log has times and values; the rate counts changes, and not what a listen begins with.
    rest("PUT", "/users/grace/rank", "admiral")
    eventually("a value in the log", lambda: page.locator("#log .written").first.inner_text(), '"admiral"')
    check("a time in the log", len(page.locator("#log .time").first.inner_text()) >= 8)
    rest("DELETE", "/users/grace/rank")
    eventually("no change", lambda: page.inner_text("#figures").endswith(" 0 changes/s"))
    page.evaluate("window.rates = new Set(); new MutationObserver(() => rates.add(document.getElementById('figures').textContent)).observe(document.getElementById('figures'), {childList: true})")
    page.click("#query button")
    page.wait_for_selector('[data-path="/users"]')
    page.wait_for_timeout(2500)
    check("what is there is no change", page.evaluate("[...rates].every(text => text.endsWith(' 0 changes/s'))"))

    # The address follows the place, and a link opens there, whatever is in its keys.
    odd = "a%2Fb c?é&"
    rest("PUT", f"/odd/{urllib.parse.quote(odd)}", {"x": 1})
    page.wait_for_selector('[data-path="/odd"]')
    unfold("/odd")
    row(f"/odd/{odd}").hover()
    row(f"/odd/{odd}").get_by_text("Open", exact=True).click()
    row(f"/odd/{odd}/x").wait_for()
    link = page.url
    check("the address", link.endswith("#/odd/" + urllib.parse.quote(odd, safe="")))
    page.go_back()
    page.wait_for_selector('[data-path="/users"]')
    narrow = browser.new_page(viewport={"width": 400, "height": 700})
    narrow.goto(link)
    narrow.wait_for_selector('.row [class="value number"]')
    check("the path", narrow.input_value("#path"), f"/odd/{odd}")
    check("the log and the slider at 400 pixels", narrow.is_visible("#log") and narrow.is_visible("#slider"))
    check("nothing is wider", narrow.evaluate("document.documentElement.scrollWidth"), 400)
    narrow.screenshot(path=f"{folder}/narrow.png")
    narrow.close()
    rest("DELETE", "/odd")
    row("/odd").wait_for(state="detached")
    unfold("/users")
    unfold("/users/ada")

    # What is hostile is shown as text.
    unfold("/users/" + KEY)
    eventually("shown as text", lambda: shown(f"/users/{KEY}/name"), json.dumps(HOSTILE))
    check("escaped", (page.title(), page.locator("img").count()), ("Dendro", 0))

    # The keyboard alone.
    page.focus("#tree")
    page.keyboard.press("Home")
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    eventually(
        "moved", lambda: page.locator(".row.chosen").get_attribute("data-path"), "/users/ada")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector('[data-path="/users/ada/name"]', state="detached")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector('[data-path="/users/ada/name"]')

    # 100,000 children: only what is seen has elements, and a frame is drawn soon.
    unfold("/wide")
    page.wait_for_selector('[data-path="/wide/k000000"]')
    check("few elements", page.locator(".row").count() < 80)
    longest = page.evaluate("""async () => {
      const tree = document.getElementById("tree");
      let longest = 0, last = performance.now();
      for (let step = 0; step < 120; step++) {
        tree.scrollTop += 2000;
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
      }
      return longest;
    }""")
    print(f"viewer: the longest of 120 frames while scrolling took {longest:.0f} ms")
    page.focus("#tree")
    page.keyboard.press("End")
    page.wait_for_selector('[data-path="/wide/k099999"]')
    page.screenshot(path=f"{folder}/wide.png")
    rest("PUT", "/wide/k099999", "changed")
    eventually("live at the end", lambda: shown("/wide/k099999"), '"changed"')

    # A query.
    page.fill("#path", "/wide")
    page.fill("#order", "$value")
    page.fill("#from", "500")
    page.fill("#limit", "3")
    page.click("#query button")
    page.wait_for_selector('[data-path="/wide/k000502"]')
    check("window", page.locator(".row").count(), 4)
    page.screenshot(path=f"{folder}/query.png")

    # The past.
    for field in ("order", "from", "limit"):
        page.fill(f"#{field}", "")
    page.fill("#path", "/users/ada")
    page.click("#query button")
    page.wait_for_selector('[data-path="/users/ada/name"]')
    eventually("the log", lambda: page.locator("#log li").count() > 5)
    first = page.locator("#log li").last.get_attribute("data-lsn")
    page.evaluate(
        "lsn => { const s = document.getElementById('slider'); s.value = lsn; s.oninput(); }", first)
    eventually("the past", lambda: shown("/users/ada/name"), '"Ada"')
    page.click("#theme")
    page.screenshot(path=f"{folder}/past.png")
    row("/users/ada/name").hover()
    row("/users/ada/name").get_by_text("Restore").click()
    page.click("#ok")
    page.wait_for_selector("#past", state="hidden")
    check("restored", rest("GET", "/users/ada/name"), "Ada")
    eventually("restored on the page", lambda: shown("/users/ada/name"), '"Ada"')
    page.screenshot(path=f"{folder}/dark.png")
    check("no errors, no outside resource", wrong, [])
    browser.close()
end("the viewer")
