"use strict";
// The page of rules: an editor, which asks the server's compiler while one types, and a playground that tries the text
// in the editor with a request. Loaded before viewer.js, whose functions it calls. All text is set as text.

const rulesPage = {
  isShown: false,
  /** What was typed, by namespace: changing over to another one loses nothing. */
  drafts: new Map(),
  draft: null,
  /** The lines as they are painted: each with its signature, its element and how wide it is. */
  painted: [],
  /** `error` or `warning` by line, as the compiler says. */
  messages: [],
  /** What became of the rules on each line when they were last tried. */
  marks: new Map(),
  checkCount: 0,
};

function rulesElement(id) { return document.getElementById(id); }

// ---- The server

/** Rules are for administrators. Who has not signed in may be one on a server that believes every credential. */
function fetchRules(path, options = {}) {
  return callServer(path, {}, { credential: app.connection.credential || "owner", ...options });
}

/** The reason of an answer that is none of those that are expected. */
async function reasonOf(answer) {
  try {
    return (await answer.json()).error || `status ${answer.status}`;
  } catch {
    return `status ${answer.status}`;
  }
}

const signInFirst = "Rules are for administrators: sign in.";

// ---- Showing

/** Shows the page, or hides it; called with every change of the address, the namespace and the credential. */
function toggleRules(isShown) {
  rulesPage.isShown = isShown;
  rulesElement("rules").hidden = !isShown;
  for (const id of ["query", "data", "keys", "undo", "figures"]) rulesElement(id).hidden = isShown;
  for (const [id, isCurrent] of [["toRules", isShown], ["toData", !isShown]]) {
    if (isCurrent) rulesElement(id).setAttribute("aria-current", "page");
    else rulesElement(id).removeAttribute("aria-current");
  }
  if (!isShown) return;
  rulesElement("past").hidden = true;
  document.title = "Rules · Dendro";
  const namespace = app.connection.namespace;
  const draft = rulesPage.drafts.get(namespace);
  if (!draft || draft.credential !== app.connection.credential) loadRules(namespace, draft);
  else if (draft !== rulesPage.draft) openDraft(draft);
}

async function loadRules(namespace, old) {
  const draft = { saved: "", text: "", credential: app.connection.credential, isReadable: false };
  rulesPage.drafts.set(namespace, draft);
  openDraft(draft);
  rulesState("", "loading");
  try {
    const answer = await fetchRules("/.settings/rules.json");
    if (rulesPage.drafts.get(namespace) !== draft) return;
    if (answer.ok) {
      draft.saved = draft.text = await answer.text();
      // What was typed before signing in stays.
      if (old && old.isReadable && old.text !== old.saved) draft.text = old.text;
      draft.isReadable = true;
      draft.problem = null;
    } else {
      draft.problem = answer.status === 401 ? signInFirst : await reasonOf(answer);
    }
  } catch (error) {
    draft.problem = error.message;
  }
  if (draft === rulesPage.draft) openDraft(draft);
}

function openDraft(draft) {
  rulesPage.draft = draft;
  rulesPage.messages = [];
  rulesPage.marks.clear();
  const text = rulesElement("rulesText");
  text.value = draft.text;
  text.readOnly = !draft.isReadable;
  text.setSelectionRange(0, 0);
  rulesElement("editor").scrollTo(0, 0);
  rulesElement("outcome").replaceChildren();
  edited();
}

function rulesState(kind, text) {
  rulesElement("rulesState").className = kind;
  rulesElement("rulesState").textContent = text;
}

/** Called with every change of the text. */
function edited() {
  const draft = rulesPage.draft;
  const isChanged = draft.isReadable && draft.text !== draft.saved;
  rulesElement("saveRules").disabled = !isChanged;
  rulesElement("revertRules").disabled = !isChanged;
  if (draft.problem) rulesState("bad", draft.problem);
  else rulesState("", !draft.isReadable ? "" : isChanged ? "not saved" : "saved");
  paint();
  clearTimeout(rulesPage.timer);
  if (draft.isReadable) rulesPage.timer = setTimeout(check, 200);
}

addEventListener("beforeunload", event => {
  for (const draft of rulesPage.drafts.values()) if (draft.text !== draft.saved) event.preventDefault();
});

// ---- Compiling

/** Asks what the compiler says of the text. */
async function check() {
  const number = ++rulesPage.checkCount;
  const draft = rulesPage.draft, text = draft.text;
  let answer;
  try {
    answer = await fetchRules("/.viewer/rules.json", { method: "POST", body: text });
    if (!answer.ok) return showMessages(number, draft, text, [], await reasonOf(answer));
    showDiagnosis(await answer.json(), number, draft, text);
  } catch (error) {
    showMessages(number, draft, text, [], error.message);
  }
}

function showDiagnosis(diagnosis, number, draft, text) {
  const messages = diagnosis.error
    ? [{ ...diagnosis.error, kind: "error" }]
    : diagnosis.warnings.map(warning => ({ ...warning, kind: "warning" }));
  showMessages(number, draft, text, messages, null);
}

/** Shows messages, unless the text has changed since, or another check was begun. */
function showMessages(number, draft, text, messages, problem) {
  if (number !== rulesPage.checkCount || draft !== rulesPage.draft || text !== draft.text) return;
  rulesPage.messages = messages;
  const items = messages.map(message => {
    const item = document.createElement("li");
    item.className = message.kind;
    const place = document.createElement("button");
    place.type = "button";
    place.textContent = `${message.line}:${message.column}`;
    place.onclick = () => goTo(message.line, message.column);
    item.append(place, part("kind", message.kind), part("message", message.message));
    return item;
  });
  if (problem) {
    const item = document.createElement("li");
    item.className = "error";
    item.append(part("message", problem));
    items.push(item);
  }
  rulesElement("messages").replaceChildren(...items);
  paint();
}

/** Puts the cursor at a line and a column, both from 1; the column counts code points. */
function goTo(line, column = 1) {
  const text = rulesElement("rulesText");
  const lines = text.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, line) => sum + line.length + 1, 0);
  const offset = start + [...(lines[line - 1] || "")].slice(0, column - 1).join("").length;
  text.focus({ preventScroll: true });
  text.setSelectionRange(offset, offset);
  const view = rulesElement("editor");
  const top = (line - 1) * 20;
  if (top < view.scrollTop + 20 || top > view.scrollTop + view.clientHeight - 60) {
    view.scrollTop = Math.max(0, top - view.clientHeight / 2);
  }
  if (column < 60) view.scrollLeft = 0;
}

// ---- Painting

const rulesTokens = /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|"(?:\\[\s\S]|[^"\\])*"?(\s*:)?|\b(?:true|false|null)\b/g;

function kindOf(token, isName) {
  if (token[0] === "/") return "comment";
  if (token[0] !== '"') return "literal";
  if (!isName) return "string";
  return token[1] === "." ? "rule" : token[1] === "$" ? "variable" : "name";
}

/** The text in lines, each a list of `[kind, text]`. */
function tokenLines(text) {
  const lines = [[]];
  const add = (kind, text) => {
    const [first, ...rest] = text.split("\n");
    if (first) lines[lines.length - 1].push([kind, first]);
    for (const line of rest) lines.push(line ? [[kind, line]] : []);
  };
  let end = 0;
  for (const match of text.matchAll(rulesTokens)) {
    add("", text.slice(end, match.index));
    const tail = match[1] || "";
    add(kindOf(match[0], tail !== ""), match[0].slice(0, match[0].length - tail.length));
    add("", tail);
    end = match.index + match[0].length;
  }
  add("", text.slice(end));
  return lines;
}

/** Marks what a message is about: the word at its column. */
function withMark(tokens, message) {
  const line = tokens.map(token => token[1]).join("");
  const start = [...line].slice(0, message.column - 1).join("").length;
  const end = start + (line.slice(start).match(/^[\w$.]+/) || [line.slice(start, start + 1)])[0].length;
  const result = [];
  let offset = 0;
  for (const [kind, text] of tokens) {
    for (const [from, to, isMarked] of [[0, start, false], [start, end, true], [end, Infinity, false]]) {
      const piece = text.slice(Math.max(0, from - offset), Math.max(0, to - offset));
      if (piece) result.push([isMarked ? `${kind} ${message.kind}` : kind, piece]);
    }
    offset += text.length;
  }
  return result;
}

/** About how many columns a text takes. */
function columnCount(text) { return text.length + (text.match(/[^\x00-\u10ff]|\t/g) || []).length; }

/** What is to be painted in each line: its tokens, the messages about it, and its mark. */
function paintedLines() {
  const messagesOf = new Map();
  for (const message of rulesPage.messages) {
    messagesOf.set(message.line, [...(messagesOf.get(message.line) || []), message]);
  }
  return tokenLines(rulesPage.draft.text).map((tokens, index) => {
    const messages = messagesOf.get(index + 1) || [], mark = rulesPage.marks.get(index + 1) || "";
    const signature = tokens.map(([kind, text]) => kind + "\0" + text).join("\0")
      + messages.map(message => `\n${message.kind}${message.column} ${message.message}`).join("") + "\n" + mark;
    return { tokens, messages, mark, signature };
  });
}

function lineElement({ tokens, messages, mark }) {
  const element = document.createElement("div");
  element.className = "line" + (messages.length > 0 ? ` has-${messages[0].kind}` : "");
  if (mark) element.dataset.mark = mark;
  element.append(...messages.reduce(withMark, tokens).map(([kind, text]) => part(kind, text)));
  element.append(...messages.map(message => part("note " + message.kind, message.message)));
  return element;
}

/** Makes the lines anew that are not as they were. */
function paint() {
  const old = rulesPage.painted, lines = paintedLines();
  const isSame = (a, b) => a && b && a.signature === b.signature;
  let start = 0, end = 0;
  while (isSame(old[start], lines[start])) start++;
  while (end < Math.min(old.length, lines.length) - start && isSame(old[old.length - 1 - end], lines[lines.length - 1 - end])) end++;
  const fresh = lines.slice(start, lines.length - end).map(line => {
    const element = lineElement(line);
    // What a message takes is no more than as many columns, since its letters are smaller.
    return { signature: line.signature, element, columns: columnCount(element.textContent) + 4 * line.messages.length };
  });
  const view = rulesElement("paint");
  const next = end > 0 ? old[old.length - end].element : null;
  for (const { element } of old.splice(start, old.length - end - start, ...fresh)) element.remove();
  for (const { element } of fresh) view.insertBefore(element, next);
  let columns = 0;
  for (const [index, line] of old.entries()) {
    columns = Math.max(columns, line.columns);
    const number = String(index + 1);
    if (line.element.dataset.number !== number) line.element.dataset.number = number;
  }
  // Lines that are out of sight are not laid out, so that their widths have to be said.
  view.style.width = `calc(${columns}ch + 80px)`;
}

// ---- Saving

async function saveRules() {
  const draft = rulesPage.draft;
  if (!draft.isReadable || draft.text === draft.saved) return;
  const text = draft.text;
  rulesState("", "saving");
  try {
    const answer = await fetchRules("/.settings/rules.json", { method: "PUT", body: text });
    if (answer.ok) {
      draft.saved = text;
      draft.problem = null;
    } else {
      const reason = answer.status === 401 ? signInFirst : await reasonOf(answer);
      const place = answer.status === 400 && /^(\d+):(\d+): ([^]*?)\n?$/.exec(reason);
      if (place) {
        const error = { line: Number(place[1]), column: Number(place[2]), message: place[3] };
        showDiagnosis({ error }, ++rulesPage.checkCount, draft, text);
        clearTimeout(rulesPage.timer);
        draft.problem = "The rules are not saved: they have an error.";
        goTo(error.line, error.column);
      } else {
        draft.problem = reason;
      }
    }
  } catch (error) {
    draft.problem = error.message;
  }
  if (draft !== rulesPage.draft) return;
  const { problem } = draft;
  edited();
  // It is about what was just asked for, and not about what is typed next.
  draft.problem = null;
  if (problem) clearTimeout(rulesPage.timer);
}

// ---- The playground

class FieldError extends Error {
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

/** The text of a field that has to be JSON; sent as it is, so that long numbers stay what they are. */
function jsonOf(id, what) {
  const text = rulesElement(id).value;
  try {
    JSON.parse(text);
  } catch (error) {
    throw new FieldError(id, `${what} is no JSON: ${error.message}`);
  }
  return text;
}

function whoAsks() {
  switch (rulesElement("who").value) {
  case "nobody": return "null";
  case "user": {
    const id = rulesElement("userID").value;
    if (!id) throw new FieldError("userID", "A user has an id.");
    return JSON.stringify({ sub: id });
  }
  default: return jsonOf("claims", "What the claims are");
  }
}

function trialQuery() {
  const query = {};
  const order = rulesElement("trialOrder").value.trim();
  if (order) query.orderBy = order;
  for (const name of ["startAt", "endAt", "equalTo"]) {
    const value = bound(rulesElement(name).value);
    if (value !== undefined) query[name] = value;
  }
  const limit = rulesElement("trialLimit").value.trim();
  if (limit) {
    if (!/^\d{1,9}$/.test(limit)) throw new FieldError("trialLimit", "How many is a whole number.");
    query[rulesElement("trialSide").value] = Number(limit);
  }
  return JSON.stringify(query);
}

function trialBody() {
  const operation = rulesElement("operation").value;
  const members = [
    `"rules":${JSON.stringify(rulesPage.draft.text)}`, `"as":${whoAsks()}`, `"operation":"${operation}"`,
    `"path":${JSON.stringify(rulesElement("trialPath").value)}`,
  ];
  if (operation === "read") members.push(`"query":${trialQuery()}`);
  if (operation === "set" || operation === "update") members.push(`"value":${jsonOf("trialValue", "The value")}`);
  const now = rulesElement("trialNow").value.trim();
  if (now) {
    if (!/^\d{1,15}$/.test(now)) throw new FieldError("trialNow", "The time is in milliseconds since 1970.");
    members.push(`"now":${now}`);
  }
  return `{${members.join(",")}}`;
}

async function tryRules() {
  const draft = rulesPage.draft, text = draft.text;
  for (const field of rulesElement("trial").querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  rulesElement("trialProblem").textContent = "";
  rulesPage.marks.clear();
  try {
    const answer = await fetchRules("/.viewer/explain.json", { method: "POST", body: trialBody() });
    if (!answer.ok) throw new Error(answer.status === 401 ? signInFirst : await reasonOf(answer));
    const verdict = await answer.json();
    if (draft !== rulesPage.draft || text !== draft.text) return;
    if (verdict.allowed === undefined) {
      showDiagnosis(verdict, ++rulesPage.checkCount, draft, text);
      throw new Error(`The rules have an error at line ${verdict.error.line}.`);
    }
    showVerdict(verdict);
  } catch (error) {
    rulesElement("outcome").replaceChildren();
    rulesElement("trialProblem").textContent = error.message;
    if (error instanceof FieldError) {
      rulesElement(error.field).setAttribute("aria-invalid", "true");
      rulesElement(error.field).focus();
    }
  }
  paint();
}

function showVerdict(verdict) {
  // If a rule was true once and false for another place, the line says the worse.
  for (const { line, result } of verdict.rules) {
    if (rulesPage.marks.get(line) !== "✗") rulesPage.marks.set(line, result === "true" ? "✓" : "✗");
  }
  const head = document.createElement("p");
  head.className = "verdict " + (verdict.allowed ? "allowed" : "denied");
  head.append(part("word", verdict.allowed ? "Allowed" : "Denied"));
  head.append(part("steps", verdict.steps === 1 ? "1 step" : `${verdict.steps.toLocaleString("en")} steps`));
  const list = document.createElement("ol");
  list.append(...verdict.rules.map(evaluationItem));
  const outcome = [head, list];
  if (verdict.rules.length === 0) outcome.push(part("hint", "There is no rule on the way."));
  if (verdict.omitted > 0) outcome.push(part("hint", `… and ${verdict.omitted.toLocaleString("en")} more`));
  rulesElement("outcome").replaceChildren(...outcome);
}

function evaluationItem(evaluation) {
  const item = document.createElement("li");
  item.className = evaluation.result;
  const head = document.createElement("div");
  head.className = "head";
  const place = document.createElement("button");
  place.type = "button";
  place.textContent = `line ${evaluation.line}`;
  place.onclick = () => goTo(evaluation.line, evaluation.column);
  head.append(part("result", evaluation.result), part("kind", evaluation.kind), part("path", evaluation.rule), place);
  item.append(head);
  if (evaluation.path !== evaluation.rule) item.append(part("where", "for " + evaluation.path));
  item.append(part("source", evaluation.source));
  if (evaluation.reason) item.append(part("reason", evaluation.reason));
  if (evaluation.values.length > 0) {
    const table = document.createElement("table");
    for (const { source, value } of evaluation.values) {
      const row = table.insertRow();
      row.insertCell().textContent = source;
      row.insertCell().textContent = value;
    }
    item.append(table);
  }
  return item;
}

/** Shows the fields that the choices need. */
function chooseFields() {
  const who = rulesElement("who").value, operation = rulesElement("operation").value;
  rulesElement("userIDLabel").hidden = who !== "user";
  rulesElement("claimsLabel").hidden = who !== "claims";
  rulesElement("trialValueLabel").hidden = operation !== "set" && operation !== "update";
  rulesElement("trialQuery").hidden = operation !== "read";
}

// ---- Starting

rulesElement("rulesText").oninput = event => {
  rulesPage.draft.text = event.target.value;
  rulesPage.marks.clear();
  edited();
};
rulesElement("rulesText").onkeydown = event => {
  if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const { value, selectionStart, readOnly } = event.target;
  if (readOnly) return;
  event.preventDefault();
  const line = value.slice(value.lastIndexOf("\n", selectionStart - 1) + 1, selectionStart);
  const deeper = /[{[]\s*$/.test(line) ? "  " : "";
  // The only way to insert that the field's own undo knows.
  document.execCommand("insertText", false, "\n" + /^\s*/.exec(line)[0] + deeper);
};
rulesElement("rules").onkeydown = event => {
  if (!event.ctrlKey && !event.metaKey) return;
  if (event.key === "s") {
    event.preventDefault();
    saveRules();
  } else if (event.key === "Enter") {
    event.preventDefault();
    tryRules();
  }
};
rulesElement("saveRules").onclick = saveRules;
rulesElement("revertRules").onclick = () => {
  rulesPage.draft.text = rulesPage.draft.saved;
  openDraft(rulesPage.draft);
};
rulesElement("trial").onsubmit = event => {
  event.preventDefault();
  tryRules();
};
rulesElement("who").onchange = rulesElement("operation").onchange = chooseFields;
chooseFields();
