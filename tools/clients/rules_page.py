"""A headless Chromium on the viewer's page of rules; screenshots are left in a folder."""

import json
import os
import sys
import urllib.request

from playwright.sync_api import sync_playwright

from checks import check, end

port, folder = sys.argv[1], sys.argv[2]
base = f"http://127.0.0.1:{port}"
os.makedirs(folder, exist_ok=True)


def rest(method, path, body=None):
    request = urllib.request.Request(
        f"{base}{path}.json?ns=rules", method=method, data=None if body is None else body.encode(),
        headers={"Authorization": "Bearer owner"})
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()


RULES = """{
  "rules": {
    // Everybody has a place of their own.
    "users": {
      "$uid": {
        ".read": true,
        ".write": "auth.uid === $uid",
        ".validate": "newData.hasChildren(['name']) && newData.child('name').isString()"
      }
    },
    "posts": {
      ".indexOn": ["author", "time"],
      ".read": "query.limitToFirst <= 100",
      "$post": {
        ".write": "!data.exists() && newData.child('author').val() === auth.uid",
        "time": {".validate": "newData.val() === now"}
      }
    }
  }
}
"""
HOSTILE = "<img src=x onerror=document.title='broken'>"

rest("PUT", "/users", json.dumps({"ada": {"name": "Ada"}, "bob": {"name": HOSTILE}}))
rest("PUT", "/.settings/rules", RULES)

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(
        executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"])
    context = browser.new_context(viewport={"width": 1280, "height": 760})
    page = context.new_page()
    # A machine that does other work as well is slow, and no proof of a fault.
    page.set_default_timeout(120_000)
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.on("request", lambda request: request.url.startswith((base, "data:")) or wrong.append(request.url))
    page.on("dialog", lambda dialog: dialog.accept())

    def eventually(what, read, expected=True):
        """Waits for what the page shows; the page's policy forbids that it waits by itself."""
        for _ in range(1500):
            value = read()
            if value == expected:
                break
            page.wait_for_timeout(20)
        check(what, value, expected)

    def state():
        return page.inner_text("#rulesState")

    def messages():
        return page.locator("#messages li").all_inner_texts()

    def edit(text):
        page.fill("#rulesText", text)

    def verdict():
        word = page.locator("#outcome .word")
        return word.inner_text() if word.count() == 1 else None

    # From the data to the rules and back.
    page.goto(f"{base}/?ns=rules#/users")
    page.wait_for_selector('[data-path="/users/ada"]')
    page.click("#toRules")
    eventually("the text", lambda: page.input_value("#rulesText"), RULES)
    check("no tree", page.is_visible("#tree"), False)
    check("the current page", page.get_attribute("#toRules", "aria-current"), "page")
    eventually("nothing to save", state, "saved")
    check("painted as it is", page.evaluate(
        "[...document.querySelectorAll('#paint .line')].map(line => line.textContent).join('\\n')"), RULES)
    check("the field above the paint", page.evaluate("""() => {
      const field = document.getElementById('rulesText'), paint = document.getElementById('paint');
      const [a, b] = [field.getBoundingClientRect(), paint.getBoundingClientRect()];
      return [a.left - b.left, a.top - b.top, a.height - b.height, field.scrollHeight <= field.clientHeight];
    }"""), [0, 0, 0, True])
    page.screenshot(path=f"{folder}/rules.png")
    page.click("#toData")
    page.wait_for_selector('[data-path="/users/ada"]')
    check("the place of before", page.input_value("#path"), "/users")
    page.go_back()
    page.wait_for_selector("#rulesText")

    # The compiler's messages while one types, at their lines.
    broken = RULES.replace("auth.uid === $uid", "firebase.uid === $uid")
    edit(broken)
    eventually("an error", messages, ["7:20\nerror\nUnknown variable 'firebase'."])
    check("at its line", page.locator("#paint .line").nth(6).locator(".note").inner_text(), "Unknown variable 'firebase'.")
    check("marked", page.locator("#paint .error:not(.note)").inner_text(), "firebase.uid")
    check("not saved", state(), "not saved")
    page.screenshot(path=f"{folder}/rules-error.png")
    page.click("#messages button")
    check("the cursor", page.evaluate(
        "[document.activeElement.id, document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionStart + 8)]"),
        ["rulesText", "firebase"])

    # What the server says when it refuses.
    def refusing(status, reason):
        def answer(route):
            if route.request.method == "PUT":
                route.fulfill(status=status, content_type="application/json", body=json.dumps({"error": reason}))
            else:
                route.continue_()
        page.unroute_all()
        page.route("**/.settings/rules.json*", answer)
        page.keyboard.press("Control+s")

    refusing(409, "The rules are in the file rules.json.")
    eventually("a file", state, "The rules are in the file rules.json.")
    refusing(401, "Permission denied")
    eventually("no administrator", state, "Rules are for administrators: sign in.")
    refusing(400, "13:17: Unknown variable 'query'.\n")
    eventually("refused", state, "The rules are not saved: they have an error.")
    check("the error of the server", messages(), ["13:17\nerror\nUnknown variable 'query'."])
    check("at its place", page.locator("#paint .error:not(.note)").inner_text(), "query.limitToFirst")
    page.unroute_all()
    # The browser reports each of the three.
    check("no others", len(wrong), 3)
    wrong.clear()
    check("what is in force", rest("GET", "/.settings/rules"), RULES)
    edit(broken + " ")
    eventually("asked again", messages, ["7:20\nerror\nUnknown variable 'firebase'."])
    edit('{"rules": {".read": true, ".write": true, "a": {".write": "auth != null"}}}')
    eventually("warnings", lambda: len(messages()), 3)
    check("they are warnings", page.locator("#messages .warning").count(), 3)
    page.screenshot(path=f"{folder}/rules-warnings.png")
    edit('{"rules": {".read": "%s"}}' % HOSTILE)
    eventually("hostile", lambda: page.locator("#messages .error").count(), 1)
    check("shown as text", (page.title(), page.locator("img").count()), ("Rules · Dendro", 0))

    # Saving; Enter keeps the indentation, and the field's own undo knows it.
    page.click("#revertRules")
    eventually("reverted", lambda: page.input_value("#rulesText"), RULES)
    page.evaluate("document.getElementById('rulesText').setSelectionRange(14, 14)")
    page.focus("#rulesText")
    page.keyboard.press("Enter")
    page.keyboard.type('"new": {},')
    check("indented", page.input_value("#rulesText").split("\n")[2], '    "new": {},')
    page.keyboard.press("Control+s")
    eventually("saved", state, "saved")
    check("at the server", rest("GET", "/.settings/rules"), page.input_value("#rulesText"))
    for _ in range(20):
        if page.input_value("#rulesText") != RULES:
            page.keyboard.press("Control+z")
    check("undone", page.input_value("#rulesText"), RULES)
    page.click("#saveRules")
    eventually("saved again", state, "saved")

    # The playground, against the data and a text that is not saved.
    page.fill("#trialPath", "/users/ada")
    page.click("#trial button")
    eventually("read", verdict, "Allowed")
    check("the line", page.locator("#paint .line[data-mark]").all_inner_texts(), ['        ".read": true,'])
    page.select_option("#who", "user")
    page.fill("#userID", "bob")
    page.select_option("#operation", "set")
    page.fill("#trialValue", '{"name": "A"}')
    page.keyboard.press("Control+Enter")
    eventually("set by another", verdict, "Denied")
    check("the rule", page.locator("#outcome li").first.locator(".source").inner_text(), "auth.uid === $uid")
    check("its values", page.locator("#outcome li").first.locator("tr").all_inner_texts(),
          ['auth.uid\t"bob"', '$uid\t"ada"', "auth.uid === $uid\tfalse"])
    page.screenshot(path=f"{folder}/playground-denied.png")
    page.locator("#outcome li button").first.click()
    check("goes to the line", page.evaluate("document.activeElement.id"), "rulesText")
    page.fill("#userID", "ada")
    page.click("#trial button")
    eventually("set by oneself", verdict, "Allowed")
    page.screenshot(path=f"{folder}/playground.png")
    check("nothing was written", json.loads(rest("GET", "/users/ada")), {"name": "Ada"})
    edit(RULES.replace("auth.uid === $uid", "false"))
    check("marks go with the text", page.locator("#paint .line[data-mark]").count(), 0)
    page.click("#trial button")
    eventually("the text in the editor counts", verdict, "Denied")
    page.select_option("#who", "claims")
    page.fill("#claims", '{"sub": ')
    page.click("#trial button")
    eventually("claims that are none", lambda: "no JSON" in page.inner_text("#trialProblem"))
    check("the field", page.evaluate("document.activeElement.id"), "claims")
    page.fill("#claims", '{"sub": "ada", "admin": true}')
    page.select_option("#operation", "update")
    page.fill("#trialPath", "/users")
    page.fill("#trialValue", '{"ada/name": 1, "bob/name": "%s"}' % HOSTILE)
    page.click("#revertRules")
    page.click("#trial button")
    eventually("an update", verdict, "Denied")
    page.select_option("#operation", "remove")
    page.fill("#trialPath", "/users/ada")
    page.click("#trial button")
    eventually("a removal", verdict, "Allowed")
    page.select_option("#operation", "read")
    page.fill("#trialPath", "/posts")
    page.click("#trial button")
    eventually("a plain reading", verdict, "Denied")
    check("fails", page.locator("#outcome li").first.locator(".result").inner_text(), "failed")
    page.fill("#trialOrder", "author")
    page.fill("#equalTo", "ada")
    page.fill("#trialLimit", "10")
    page.click("#trial button")
    eventually("a query", verdict, "Allowed")
    page.screenshot(path=f"{folder}/playground-query.png")
    check("no image", page.locator("img").count(), 0)

    # The keyboard alone.
    page.click("#toRules")
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    check("reached", {"rulesText", "who", "operation", "trialPath", "trialOrder", "Try"} <= reached)

    # What was typed for one namespace waits while another one is shown.
    edit(RULES + "\n")
    page.evaluate("connect('other')")
    eventually("another namespace", lambda: "users" not in page.input_value("#rulesText"))
    page.evaluate("connect('rules')")
    eventually("the draft", lambda: page.input_value("#rulesText"), RULES + "\n")
    page.click("#revertRules")

    # Dark, and narrow.
    page.click("#theme")
    edit(broken)
    eventually("an error in the dark", lambda: len(messages()), 1)
    page.screenshot(path=f"{folder}/rules-dark.png")
    page.click("#revertRules")
    narrow = context.new_page()
    narrow.set_viewport_size({"width": 400, "height": 800})
    narrow.goto(f"{base}/?ns=rules#rules")
    narrow.wait_for_selector("#paint .rule")
    check("nothing is wider", narrow.evaluate("document.documentElement.scrollWidth"), 400)
    narrow.screenshot(path=f"{folder}/rules-narrow.png")
    narrow.close()

    # As long as rules may be.
    long = '{"rules": {\n' + ",\n".join(
        '  "k%05d": {".read": "auth.uid === \'k%05d\'"}' % (n, n) for n in range(6000)) + "\n}}"
    page.evaluate("""text => {
      const field = document.getElementById('rulesText');
      field.value = text;
      field.dispatchEvent(new Event('input'));
    }""", long)
    eventually("a long text", lambda: page.locator("#paint .line").count(), 6002)
    took = page.evaluate("""() => {
      const field = document.getElementById('rulesText'), start = performance.now();
      field.setSelectionRange(20, 20);
      document.execCommand('insertText', false, 'x');
      return performance.now() - start;
    }""")
    print(f"rules: a key in a text of 6,002 lines took {took:.0f} ms")
    page.click("#revertRules")
    check("no errors, no outside resource", wrong, [])
    browser.close()
end("the page of rules")
