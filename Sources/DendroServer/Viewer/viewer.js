"use strict";
// The data viewer. What is shown comes from a WebSocket in the protocol of the SDKs, with one addition: a
// listen with `shallow` gets of each child that has children only how many it has. All text is set as text.

const at = id => document.getElementById(id);
const rowHeight = 24;

// ---- Keys and paths

function compareKeys(a, b) {
  const integer = key => /^-?0*\d{1,10}$/.test(key) && Math.abs(Number(key)) <= 2147483648 ? Number(key) : null;
  const x = integer(a), y = integer(b);
  if (x !== null && y !== null) return x - y || a.length - b.length;
  if (x !== null) return -1;
  if (y !== null) return 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

function keysOf(path) { return path.split("/").filter(key => key !== ""); }
function textOf(keys) { return "/" + keys.join("/"); }

/** The part of the page's address that names a location: `#/users/ada`, its keys percent-encoded. */
function linkOf(keys) { return "#/" + keys.map(encodeURIComponent).join("/"); }

/** The keys that such a part names. What is no encoding stands for itself, as where the address was typed. */
function keysOfLink(link) {
  return keysOf(link.replace(/^#/, "")).map(key => {
    try {
      return decodeURIComponent(key);
    } catch {
      return key;
    }
  });
}

// ---- The connection

class Connection {
  constructor(namespace, changed) {
    this.namespace = namespace;
    this.changed = changed;
    this.number = 0;
    this.answers = new Map();
    this.listens = new Map();
    this.credential = null;
    /** What a server that believes every credential takes for an administrator's; null if this one does not. */
    this.believed = null;
    this.isEnded = false;
    this.delay = 250;
    this.open();
  }

  open() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const last = this.session ? "&ls=" + encodeURIComponent(this.session) : "";
    const name = this.namespace ? "&ns=" + encodeURIComponent(this.namespace) : "";
    const socket = new WebSocket(`${scheme}://${location.host}/.ws?v=5${last}${name}`);
    this.socket = socket;
    this.missing = 0;
    this.parts = [];
    socket.onmessage = event => this.frame(event.data);
    socket.onclose = () => {
      for (const answer of this.answers.values()) answer({ s: "disconnected", d: "The connection was lost." });
      this.answers.clear();
      if (this.isEnded) return;
      this.changed("bad", "reconnecting");
      setTimeout(() => this.open(), this.delay);
      this.delay = Math.min(this.delay * 2, 10000);
    };
    clearInterval(this.timer);
    this.timer = setInterval(() => { if (socket.readyState === 1) socket.send("0"); }, 45000);
  }

  close() {
    this.isEnded = true;
    clearInterval(this.timer);
    this.socket.close(1000);
  }

  frame(text) {
    if (this.missing > 0) {
      this.parts.push(text);
      if (--this.missing > 0) return;
      text = this.parts.join("");
      this.parts = [];
    } else if (text.length <= 6 && /^\d+$/.test(text)) {
      this.missing = Number(text);
      return;
    }
    const message = JSON.parse(text);
    if (message.t === "c") {
      if (message.d.t === "h") this.begin(message.d.d);
      return;
    }
    const { r, a, b } = message.d;
    if (r !== undefined) {
      const answer = this.answers.get(r);
      this.answers.delete(r);
      if (answer) answer(b);
    } else if (a === "d" || a === "m") {
      const listen = this.listens.get(b.t);
      if (listen) listen.push(a === "m", keysOf(b.p), b.d, listen.isAnswered);
    } else if (a === "c" || a === "ac") {
      this.changed("bad", "no permission");
    }
  }

  async begin(hello) {
    this.session = hello.s;
    this.delay = 250;
    if (this.credential) {
      await this.signIn(this.credential);
    } else {
      // Where there are rules, they would decide about a page that has not signed in.
      const answer = await this.request("gauth", { cred: "owner" });
      this.believed = answer.s === "ok" ? "owner" : null;
    }
    this.tell();
    for (const [tag, listen] of this.listens) this.sendListen(tag, listen);
  }

  tell() { this.changed("good", this.credential ? "connected, signed in" : "connected"); }

  async signIn(credential) {
    const isToken = /^[\w-]+\.[\w-]+\.[\w-]*$/.test(credential);
    const answer = await this.request(isToken ? "auth" : "gauth", { cred: credential });
    if (answer.s === "ok") this.credential = credential;
    return answer;
  }

  send(action, body) {
    const text = JSON.stringify({ t: "d", d: { r: ++this.number, a: action, b: body } });
    if (text.length <= 16384) return this.socket.send(text);
    const parts = [];
    for (let start = 0; start < text.length;) {
      let end = Math.min(start + 16384, text.length);
      // Not within a surrogate pair: the half would not survive.
      const code = text.charCodeAt(end - 1);
      if (end < text.length && code >= 0xd800 && code < 0xdc00) end--;
      parts.push(text.slice(start, end));
      start = end;
    }
    this.socket.send(String(parts.length));
    for (const part of parts) this.socket.send(part);
  }

  request(action, body) {
    return new Promise(resolve => {
      if (this.socket.readyState !== 1) return resolve({ s: "disconnected", d: "There is no connection." });
      this.send(action, body);
      this.answers.set(this.number, resolve);
    });
  }

  /**
   * Listens to a location. `push` gets what is there, unless it is nothing, and then what changes; `ended` gets the
   * answer, after what is there.
   */
  listen(keys, query, push, ended) {
    const tag = this.listenCount = (this.listenCount || 0) + 1;
    const listen = { keys, query, push, ended, isAnswered: false };
    this.listens.set(tag, listen);
    if (this.socket.readyState === 1 && this.session) this.sendListen(tag, listen);
    return tag;
  }

  async sendListen(tag, listen) {
    const body = { p: textOf(listen.keys), h: "", t: tag, shallow: true };
    if (listen.query) body.q = listen.query;
    listen.isAnswered = false;
    const answer = await this.request("q", body);
    listen.isAnswered = true;
    if (answer.s !== "disconnected" && this.listens.get(tag) === listen) listen.ended(answer);
  }

  unlisten(tag) {
    const listen = this.listens.get(tag);
    this.listens.delete(tag);
    if (!listen || this.socket.readyState !== 1) return;
    const body = { p: textOf(listen.keys), t: tag, shallow: true };
    if (listen.query) body.q = listen.query;
    this.request("n", body);
  }
}

// ---- The tree

/**
 * What is known of one location. `form` is a scalar, or an object with `.value`, `.n` or `.priority`; null for nothing;
 * undefined before the server has said what is there.
 */
class TreeNode {
  constructor(keys, form) {
    this.keys = keys;
    this.form = form;
    this.isOpen = false;
    this.children = null;
    this.sorted = null;
    this.tag = null;
    this.more = 0;
  }

  get isKnown() { return this.form !== undefined; }
  get count() { return this.form !== null && typeof this.form === "object" ? this.form[".n"] : undefined; }
  get scalar() {
    return this.form !== null && typeof this.form === "object" ? this.form[".value"] : this.form;
  }
  get priority() {
    return this.form !== null && typeof this.form === "object" ? this.form[".priority"] : undefined;
  }

  order() {
    if (!this.sorted) this.sorted = [...this.children.values()].sort((a, b) => compareKeys(a.key, b.key));
    return this.sorted;
  }

  get key() { return this.keys.length ? this.keys[this.keys.length - 1] : "/"; }
}

const app = {
  connection: null, root: null, query: null, rows: [], chosen: 0, past: null, undo: [], changes: 0, lastLSN: null,
  isDrawing: false, isStale: true, flash: new Set(),
};

function stale() {
  app.isStale = true;
  draw();
}

function draw() {
  if (app.isDrawing) return;
  app.isDrawing = true;
  requestAnimationFrame(() => {
    app.isDrawing = false;
    // While the rules are shown, there may be none.
    if (!app.root) return;
    if (app.isStale) flatten();
    showRows();
  });
}

function flatten() {
  app.isStale = false;
  const rows = [];
  const walk = (node, depth) => {
    rows.push({ node, depth });
    if (!node.isOpen || !node.children) return;
    for (const child of node.order()) walk(child, depth + 1);
    if (node.more > 0) rows.push({ node, depth: depth + 1, more: node.more });
  };
  walk(app.root, 0);
  const chosen = app.rows[app.chosen];
  app.rows = rows;
  if (chosen) {
    const path = textOf(chosen.node.keys);
    const near = rows[app.chosen];
    if (!near || textOf(near.node.keys) !== path) {
      const index = rows.findIndex(row => textOf(row.node.keys) === path);
      app.chosen = index >= 0 ? index : Math.min(app.chosen, rows.length - 1);
    }
  }
  at("spacer").style.height = rows.length * rowHeight + "px";
}

function showRows() {
  const view = at("tree");
  const first = Math.max(0, Math.floor(view.scrollTop / rowHeight) - 8);
  const last = Math.min(app.rows.length, Math.ceil((view.scrollTop + view.clientHeight) / rowHeight) + 8);
  const rows = at("rows");
  rows.style.transform = `translateY(${first * rowHeight}px)`;
  const elements = [];
  for (let index = first; index < last; index++) elements.push(rowElement(app.rows[index], index));
  rows.replaceChildren(...elements);
  app.flash.clear();
}

function part(name, text) {
  const element = document.createElement("span");
  element.className = name;
  element.textContent = text;
  return element;
}

function tool(name, action) {
  const button = document.createElement("button");
  button.textContent = name;
  button.tabIndex = -1;
  button.onclick = event => {
    event.stopPropagation();
    action();
  };
  return button;
}

function rowElement({ node, depth, more }, index) {
  const row = document.createElement("div");
  row.className = "row" + (index === app.chosen ? " chosen" : "");
  row.style.paddingLeft = 8 + depth * 18 + "px";
  row.setAttribute("role", "treeitem");
  row.setAttribute("aria-level", depth + 1);
  row.dataset.path = textOf(node.keys);
  if (more) {
    row.append(part("count", `… and ${more.toLocaleString("en")} more: ask for a part with a query`));
    return row;
  }
  if (app.flash.has(textOf(node.keys))) row.classList.add("new");
  const isBranch = node.count !== undefined;
  const fold = part("fold", isBranch ? (node.isOpen ? "▾" : "▸") : "");
  fold.onclick = event => {
    event.stopPropagation();
    toggle(node);
  };
  if (isBranch) row.setAttribute("aria-expanded", node.isOpen);
  row.append(fold, part("key", node.key));
  if (isBranch) {
    row.append(part("count", `{${node.count.toLocaleString("en")}}`));
  } else if (node.scalar !== null && node.scalar !== undefined) {
    row.append(part("value " + typeof node.scalar, JSON.stringify(node.scalar)));
  } else {
    row.append(part("count", node.isKnown ? "nothing" : node.refusal || "…"));
  }
  if (node.priority !== undefined && node.priority !== null) {
    row.append(part("priority", `priority ${JSON.stringify(node.priority)}`));
  }
  if (node.isKnown) row.append(toolsOf(node));
  row.onclick = () => {
    app.chosen = index;
    draw();
  };
  row.ondblclick = () => edit(node);
  return row;
}

function toolsOf(node) {
  const tools = document.createElement("span");
  tools.className = "tools";
  if (node !== app.root) tools.append(tool("Open", () => visit(node.keys)));
  if (app.past !== null) {
    tools.append(tool("Restore", () => restore(node)));
  } else {
    tools.append(tool("Add", () => add(node)), tool("Edit", () => edit(node)));
    tools.append(tool("Remove", () => remove(node)));
  }
  return tools;
}

function toggle(node) {
  if (node.isOpen) {
    fold(node);
    node.isOpen = false;
    stale();
  } else {
    node.isOpen = true;
    load(node);
  }
}

/** Ends the listens of the node and below. */
function fold(node) {
  if (node.tag !== null) app.connection.unlisten(node.tag);
  node.tag = null;
  if (node.children) for (const child of node.children.values()) if (child.isOpen) fold(child);
  node.children = node.sorted = null;
}

function load(node) {
  if (app.past !== null) return loadPast(node);
  const query = node === app.root ? app.query : null;
  const push = (isMerge, keys, data, isChange) => receive(node, isMerge, keys, data, isChange);
  node.tag = app.connection.listen(node.keys, query, push, answer => {
    if (answer.s === "ok") {
      if (!node.isKnown) node.form = null;
      problem("");
    } else {
      node.refusal = answer.s === "permission_denied" ? "no permission: sign in" : answer.d || answer.s;
      problem(answer.d || answer.s);
      if (answer.s === "permission_denied") at("sign").focus();
    }
    stale();
  });
  stale();
}

/** Takes what a shallow listen says: all children, or those that have changed. */
function receive(node, isMerge, keys, data, isChange) {
  problem("");
  if (isChange && concerns(node, isMerge, keys, data)) app.changes++;
  if (!isMerge && keys.length === node.keys.length) {
    takeAll(node, data);
  } else {
    const changes = isMerge ? data : { [keys[node.keys.length]]: data };
    if (!node.children) node.children = new Map();
    for (const [key, form] of Object.entries(changes)) take(node, key, form);
    const count = node.children.size + node.more;
    const priority = node.priority;
    if (node !== app.root || !app.query) node.form = count > 0 ? { ".n": count } : null;
    if (priority !== undefined && node.form) node.form[".priority"] = priority;
  }
  logSoon();
  stale();
}

/** Whether a change counts for this node: one below an open child counts there. */
function concerns(node, isMerge, keys, data) {
  if (!isMerge && keys.length === node.keys.length) return true;
  const changed = isMerge ? Object.keys(data) : [keys[node.keys.length]];
  return changed.some(key => !(node.children && node.children.has(key) && node.children.get(key).isOpen));
}

function takeAll(node, data) {
  const old = node.children || new Map();
  node.children = new Map();
  node.sorted = null;
  node.more = 0;
  if (data === null || typeof data !== "object" || ".value" in data) {
    for (const child of old.values()) if (child.isOpen) fold(child);
    node.form = data;
    return;
  }
  const form = { ".n": 0 };
  for (const [key, value] of Object.entries(data)) {
    if (key === ".priority") form[".priority"] = value;
    else if (key === ".more") node.more = value;
    else {
      const child = old.get(key) || new TreeNode([...node.keys, key], value);
      old.delete(key);
      node.children.set(key, child);
      setForm(child, value);
    }
  }
  for (const child of old.values()) if (child.isOpen) fold(child);
  form[".n"] = node.children.size + node.more;
  node.form = form[".n"] > 0 ? form : null;
}

function take(node, key, form) {
  const child = node.children.get(key);
  app.flash.add(textOf([...node.keys, key]));
  if (form === null) {
    if (child && child.isOpen) fold(child);
    node.children.delete(key);
    node.sorted = null;
  } else if (child) {
    setForm(child, form);
  } else {
    node.children.set(key, new TreeNode([...node.keys, key], form));
    node.sorted = null;
  }
}

function setForm(node, form) {
  node.form = form;
  if (node.isOpen && node.count === undefined) {
    fold(node);
    node.isOpen = false;
  }
}

// ---- Editing

async function read(keys) {
  if (app.past !== null) return (await fetchJSON("past.json", { path: textOf(keys), at: app.past, whole: 1 })).data;
  const answer = await app.connection.request("g", { p: textOf(keys), q: {} });
  if (answer.s !== "ok") throw new Error(answer.d);
  return answer.d;
}

/** Writes, and remembers what was there. */
async function write(keys, value, before) {
  const answer = await app.connection.request("p", { p: textOf(keys), d: value });
  if (answer.s !== "ok") throw new Error(answer.d);
  app.undo.push({ keys, before });
  if (app.undo.length > 100) app.undo.shift();
  at("undo").disabled = false;
  logSoon();
}

async function undo() {
  const last = app.undo.pop();
  at("undo").disabled = app.undo.length === 0;
  if (!last) return;
  const answer = await app.connection.request("p", { p: textOf(last.keys), d: last.before });
  if (answer.s !== "ok") {
    app.undo.push(last);
    at("undo").disabled = false;
    problem(answer.d);
  }
}

/** Shows a dialog with those of the fields that have a beginning. */
function ask({ title, note, key, secret, value, ok, action }) {
  const dialog = at("dialog");
  const fields = { key, secret, value };
  at("title").textContent = title;
  at("note").textContent = note || "";
  at("note").hidden = !note;
  for (const [name, text] of Object.entries(fields)) {
    at(name + "Label").hidden = text === undefined;
    at(name).value = text || "";
  }
  at("wrong").textContent = "";
  at("ok").textContent = ok;
  at("ok").onclick = async event => {
    event.preventDefault();
    try {
      await action({ key: at("key").value, secret: at("secret").value, value: at("value").value });
      dialog.close();
      at(rulesPage.isShown ? "rulesText" : "tree").focus();
    } catch (error) {
      at("wrong").textContent = error.message;
    }
  };
  dialog.showModal();
  at(Object.keys(fields).find(name => fields[name] !== undefined) || "ok").focus();
  // A long value is read from its beginning.
  at("value").setSelectionRange(0, 0);
  at("value").scrollTop = 0;
}

function parsed(text) {
  let value, isTooLarge = false;
  try {
    value = JSON.parse(text, (key, part) => {
      // It would be sent as null, which removes.
      if (part === Infinity || part === -Infinity) isTooLarge = true;
      return part;
    });
  } catch (error) {
    throw new Error("This is no JSON: " + error.message);
  }
  if (isTooLarge) throw new Error("A number is beyond 1.7976931348623157e308, which is the limit.");
  return value;
}

async function guarded(body) {
  try {
    await body();
  } catch (error) {
    problem(error.message);
  }
}

const editByteLimit = 1 << 20;

function edit(node) {
  if (app.past !== null || !node.isKnown) return;
  guarded(async () => {
    const before = await read(node.keys);
    const text = JSON.stringify(before, null, 2);
    if (text.length > editByteLimit) throw new Error("This is too large to be edited as text: unfold it.");
    ask({
      title: textOf(node.keys), value: text, ok: "Write",
      action: ({ value }) => write(node.keys, parsed(value), before),
    });
  });
}

function add(node) {
  if (app.past !== null || !node.isKnown) return;
  ask({
    title: "Add below " + textOf(node.keys), key: "", value: "null", ok: "Add",
    action: async ({ key, value }) => {
      const keys = [...node.keys, ...keysOf(key)];
      if (keys.length === node.keys.length) throw new Error("A child needs a key.");
      await write(keys, parsed(value), await read(keys));
      if (!node.isOpen) toggle(node);
    },
  });
}

function remove(node) {
  if (app.past !== null || !node.isKnown) return;
  guarded(async () => {
    const before = await read(node.keys);
    if (node.keys.length > 0 && node.count === undefined) return write(node.keys, null, before);
    ask({
      title: "Remove " + textOf(node.keys) + " and all below it?", ok: "Remove",
      action: () => write(node.keys, null, before),
    });
  });
}

function restore(node) {
  guarded(async () => {
    const value = await read(node.keys);
    ask({
      title: `Write ${textOf(node.keys)} as it was after write ${app.past}?`, ok: "Restore",
      action: async () => {
        const answer = await app.connection.request("g", { p: textOf(node.keys), q: {} });
        await write(node.keys, value, answer.d);
        travel(null);
      },
    });
  });
}

function problem(text) { at("problem").textContent = text; }

// ---- The log and the past

/** Asks the page's own server about the namespace, as who has signed in. */
function callServer(path, parameters, { credential = app.connection.credential || app.connection.believed, ...options } = {}) {
  const query = new URLSearchParams(parameters);
  if (app.connection.namespace) query.set("ns", app.connection.namespace);
  if (credential && /^[\w-]+\.[\w-]+\.[\w-]*$/.test(credential)) query.set("auth", credential);
  const headers = credential && !query.has("auth") ? { Authorization: "Bearer " + credential } : {};
  return fetch(path + "?" + query, { headers, ...options });
}

async function fetchJSON(name, parameters) {
  const answer = await callServer("/.viewer/" + name, parameters);
  const data = await answer.json();
  if (!answer.ok) throw new Error(data.error);
  return data;
}

/** The time of today, or the day and the time, as they are here. */
function timeOf(milliseconds) {
  const time = new Date(milliseconds);
  // Of the languages, Sweden's has the form 2026-11-21 04:00:12.
  const clock = time.toLocaleTimeString("sv-SE"), day = time.toLocaleDateString("sv-SE");
  return day === new Date().toLocaleDateString("sv-SE") ? clock : `${day} ${clock}`;
}

function logSoon() {
  if (app.logTimer) return;
  app.logTimer = setTimeout(() => {
    app.logTimer = null;
    loadLog();
  }, 300);
}

async function loadLog() {
  let log;
  try {
    log = await fetchJSON("log.json", { limit: 200 });
  } catch (error) {
    at("range").textContent = error.message;
    at("slider").disabled = true;
    return;
  }
  const slider = at("slider");
  const wasLast = slider.disabled || slider.value === slider.max;
  slider.disabled = log.oldest >= log.newest;
  slider.min = log.oldest;
  slider.max = log.newest;
  if (app.past === null && wasLast) slider.value = log.newest;
  app.lastLSN = log.newest;
  at("range").textContent = log.oldest < log.newest
    ? `States after write ${log.oldest} to ${log.newest}` : `Write ${log.newest}; no earlier state is kept`;
  const items = log.writes.map(write => {
    const item = document.createElement("li");
    item.dataset.lsn = write.lsn;
    item.title = `${write.what} ${write.path}\n${new Date(write.time).toLocaleString()}`;
    if (write.lsn === app.past) item.className = "chosen";
    item.append(part("lsn", write.lsn), part("what", `${write.what} ${write.path}`), part("time", timeOf(write.time)));
    if (write.value !== undefined) {
      item.append(part("written" + (write.value.startsWith('"') ? " string" : ""), write.value));
    }
    item.onclick = () => travel(write.lsn);
    return item;
  });
  at("log").replaceChildren(...items.reverse());
}

/** Shows the state after a write; null for now. */
function travel(lsn) {
  if (lsn !== null && lsn >= app.lastLSN) lsn = null;
  if (lsn === app.past) return;
  const open = new Set();
  for (const { node } of app.rows) if (node.isOpen) open.add(textOf(node.keys));
  fold(app.root);
  app.past = lsn;
  app.open = open;
  at("past").hidden = lsn === null;
  at("moment").textContent = lsn === null ? "" : `the state after write ${lsn}`;
  at("slider").value = lsn === null ? at("slider").max : lsn;
  for (const item of at("log").children) item.classList.toggle("chosen", Number(item.dataset.lsn) === lsn);
  load(app.root);
}

async function loadPast(node) {
  const lsn = app.past;
  await guarded(async () => {
    const answer = await fetchJSON("past.json", { path: textOf(node.keys), at: lsn });
    if (app.past !== lsn) return;
    takeAll(node, answer.data);
    if (node.children) {
      for (const child of node.children.values()) {
        if (child.count !== undefined && app.open.has(textOf(child.keys))) {
          child.isOpen = true;
          loadPast(child);
        }
      }
    }
  });
  stale();
}

// ---- Starting

/** Shows the location that the page's address names, or the rules. */
function show() {
  const isRules = location.hash === "#rules";
  toggleRules(isRules);
  if (isRules) return;
  at("toData").href = location.hash || "#/";
  if (app.root) fold(app.root);
  app.past = null;
  at("past").hidden = true;
  at("slider").value = at("slider").max;
  app.rows = [];
  app.chosen = 0;
  const keys = keysOfLink(location.hash);
  at("path").value = textOf(keys);
  document.title = keys.length ? textOf(keys) + " · Dendro" : "Dendro";
  app.root = new TreeNode(keys, undefined);
  app.root.isOpen = true;
  load(app.root);
}

/** Goes to a location, and without the query of the one before; the browser's history has both. */
function visit(keys) {
  if (linkOf(keys) === linkOf(keysOfLink(location.hash))) return show();
  location.hash = linkOf(keys);
}

function bound(text) {
  if (text === "") return undefined;
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" ? text : value;
  } catch {
    return text;
  }
}

function queryFromForm() {
  const order = at("order").value.trim(), limit = at("limit").value.trim();
  const from = bound(at("from").value), to = bound(at("to").value);
  if (order === "" && limit === "" && from === undefined && to === undefined) return null;
  const query = { i: order === "" || order === "$key" ? ".key" : order === "$value" ? ".value" : order === "$priority" ? ".priority" : order };
  const isKey = query.i === ".key";
  if (from !== undefined) query.sp = isKey ? String(from) : from;
  if (to !== undefined) query.ep = isKey ? String(to) : to;
  if (limit !== "") {
    query.l = Number(limit);
    query.vf = at("side").value;
  }
  return query;
}

function connect(namespace) {
  const credential = app.connection ? app.connection.credential : null;
  if (app.connection) app.connection.close();
  app.connection = new Connection(namespace, (kind, text) => {
    at("state").className = kind;
    at("state").textContent = text;
    if (kind === "good") logSoon();
  });
  app.connection.credential = credential;
  app.root = null;
  app.undo = [];
  at("undo").disabled = true;
  show();
}

async function start() {
  let names = [];
  try {
    names = (await (await fetch("/.viewer/namespaces.json")).json()).names || [];
  } catch { /* one without a name is shown then */ }
  const select = at("namespace");
  const wanted = new URLSearchParams(location.search).get("ns");
  if (wanted && !names.includes(wanted)) names.unshift(wanted);
  for (const name of names) select.add(new Option(name, name, false, name === wanted));
  select.parentElement.hidden = names.length === 0;
  select.onchange = () => {
    const address = new URL(location.href);
    address.searchParams.set("ns", select.value);
    history.replaceState(null, "", address);
    connect(select.value);
  };
  connect(select.value || wanted || "");
}

at("query").onsubmit = event => {
  event.preventDefault();
  const keys = keysOf(at("path").value);
  app.query = queryFromForm();
  // Set here and not by the address, which has no query.
  if (linkOf(keys) !== linkOf(keysOfLink(location.hash))) history.pushState(null, "", linkOf(keys));
  show();
  at("tree").focus();
};
addEventListener("hashchange", () => {
  app.query = null;
  for (const name of ["order", "from", "to", "limit"]) at(name).value = "";
  show();
});
at("tree").onscroll = draw;
addEventListener("resize", draw);
at("undo").onclick = undo;
at("now").onclick = () => travel(null);
at("slider").oninput = () => {
  clearTimeout(app.sliderTimer);
  const lsn = Number(at("slider").value);
  at("moment").textContent = `the state after write ${lsn}`;
  app.sliderTimer = setTimeout(() => travel(lsn), 120);
};
at("theme").onclick = () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
};
at("sign").onclick = () => ask({
  title: "Sign in", note: "With the administrators' secret, or an ID token. It is kept for as long as this page is open.",
  secret: "", ok: "Sign in",
  action: async ({ secret }) => {
    const answer = await app.connection.signIn(secret);
    if (answer.s !== "ok") throw new Error(answer.d);
    app.connection.tell();
    show();
  },
});
at("cancel").onclick = () => at("dialog").close();
// A secret does not stay in the page's fields.
at("dialog").onclose = () => { at("secret").value = ""; };

at("tree").onkeydown = event => {
  const row = app.rows[app.chosen];
  if (!row) return;
  const { node } = row;
  const page = Math.floor(at("tree").clientHeight / rowHeight);
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
  if (event.key in moves) {
    app.chosen = Math.max(0, Math.min(app.rows.length - 1, app.chosen + moves[event.key]));
  } else if (event.key === "ArrowRight") {
    if (node.count !== undefined && !node.isOpen) toggle(node);
    else if (node.isOpen && app.rows[app.chosen + 1] && app.rows[app.chosen + 1].depth > row.depth) app.chosen++;
  } else if (event.key === "ArrowLeft") {
    if (node.isOpen) toggle(node);
    else for (let index = app.chosen - 1; index >= 0; index--) {
      if (app.rows[index].depth < row.depth) {
        app.chosen = index;
        break;
      }
    }
  } else if (event.key === "Enter") {
    edit(node);
  } else if (event.key === "+") {
    add(node);
  } else if (event.key === "Delete") {
    remove(node);
  } else if (event.key === "o" && !event.ctrlKey && !event.metaKey && !event.altKey) {
    visit(node.keys);
  } else {
    return;
  }
  event.preventDefault();
  const top = app.chosen * rowHeight, view = at("tree");
  if (top < view.scrollTop) view.scrollTop = top;
  else if (top + rowHeight > view.scrollTop + view.clientHeight) view.scrollTop = top + rowHeight - view.clientHeight;
  draw();
};
addEventListener("keydown", event => {
  if (rulesPage.isShown || at("dialog").open || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  if (event.key === "z" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    undo();
  } else if (event.key === "/") {
    event.preventDefault();
    at("path").select();
  }
});
setInterval(() => {
  const rate = app.changes === 1 ? "1 change/s" : `${app.changes} changes/s`;
  at("figures").textContent = app.lastLSN === null ? "" : `write ${app.lastLSN} · ${rate}`;
  app.changes = 0;
}, 1000);

start();
