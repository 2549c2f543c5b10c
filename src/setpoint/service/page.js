// The live page. Whatever comes from a stream is put in as text, never as markup.
"use strict";
const $ = (id) => document.getElementById(id);
const NS = "http://www.w3.org/2000/svg";
const MOST = 120;
let token = sessionStorage.getItem("token") || "";
let open = null; // the stream on the page
let follow = null; // what stops following it
let points = [];

function headers() { return token ? { authorization: `Bearer ${token}` } : {}; }

async function ask(path) {
  const answer = await fetch(path, { headers: headers() });
  if (answer.status === 401 || answer.status === 403) {
    $("key").hidden = false;
    throw new Error("a token is needed");
  }
  const data = await answer.json();
  if (!answer.ok) throw new Error(data.detail);
  $("key").hidden = true;
  return data;
}

function say(text) { $("state").textContent = text; }
function cell(text, of, look) {
  const td = document.createElement("td");
  td.className = look || "";
  td.textContent = text;
  if (of) td.dataset.of = of;
  return td;
}
const percent = (x) => (x === null || x === undefined ? "–" : `${(100 * x).toFixed(1)} %`);
const number = (x) => (x === null || x === undefined ? "–" : Number(x.toPrecision(4)).toString());
const path = (name) => `v1/streams/${encodeURIComponent(name)}`;

// The list

const KINDS = { dearer: "needs more width than it did: the model has become worse",
  model: "the model's errors have grown", world: "the actual values have become restless",
  cheaper: "needs less width than it did", silence: "actual values have stopped coming",
  window: "the last losses are off their level",
  full: "the safeguard shows unlimited sets", empty: "the safeguard shows empty sets" };
const GATE_KINDS = { dearer: "the gate acts on less than it did",
  cheaper: "the gate acts on more than it did", silence: "labels have stopped coming",
  window: "the last requests had too many errors",
  full: "the budget is spent: everything is deferred" };
function why(row) {
  const KIND = row.acted ? GATE_KINDS : KINDS;
  if (row.status.includes("broken")) return "the guarantee is broken: a premise does not hold";
  const kinds = [...Object.keys(row.alarms), row.alarm].filter((kind) => KIND[kind]);
  return kinds.length ? kinds.map((kind) => KIND[kind]).join("; ") : row.status.join(", ");
}
const times = (x) => (x === undefined || x === null ? "–" : `${number(Number(x.toPrecision(2)))} ×`);
const dear = (x) => (x > 2.5 ? "bad" : x > 1.5 ? "warn" : "");
function low(share, asked) {
  if (share === null || asked === null || share === undefined) return "";
  return share < asked - 0.1 ? "bad" : share < asked - 0.05 ? "warn" : "";
}

// The coverage of each hundred of the last 1,000 labels, with a line at what is asked.
function spark(row) {
  const svg = part("svg", { viewBox: "0 0 60 16", role: "img",
    "aria-label": `coverage of the last labels: ${row.past.map(percent).join(", ")}` }, "spark");
  const x = (i) => 3 + (54 * i) / Math.max(row.past.length - 1, 1);
  const y = (share) => 15 - 14 * Math.max(0, (share - 0.5) / 0.5);
  if (row.asked !== null) {
    svg.append(part("line", { x1: 0, x2: 60, y1: y(row.asked), y2: y(row.asked) }, "grid"));
  }
  svg.append(part("polyline", { points: row.past.map((share, i) => `${x(i)},${y(share)}`).join(" ") }));
  const last = row.past.length - 1, look = low(row.past[last], row.asked) ? "miss" : "hit";
  svg.append(part("circle", { cx: x(last), cy: y(row.past[last]), r: 2 }, look));
  return svg;
}

function show(rows) {
  $("rows").replaceChildren(...rows.map((row) => {
    const tr = document.createElement("tr");
    tr.className = row.trouble >= 1 ? "bad" : "";
    const first = document.createElement("td");
    const link = document.createElement("a");
    link.textContent = row.name || "(no name)";
    if (row.name) link.href = `#${encodeURIComponent(row.name)}`;
    const reason = document.createElement("span");
    reason.className = "why";
    reason.textContent = why(row);
    first.append(link, reason);
    const limit = row.bounds[0] === null ? "" : ` of ${number(row.bounds[0])}`;
    const price = row.price || [], shares = row.acted || row.coverage;
    const share = (n) => (row.acted ? "acts on " : "") + percent(shares[n]);
    const lately = cell(share(1), "last 1,000", low(row.coverage[1], row.asked));
    if (row.past.length) lately.prepend(spark(row));
    tr.append(first, cell(share(0), "last 100", low(row.coverage[0], row.asked)), lately,
      cell(row.acted ? `errors ≤ ${percent(row.levels[0])}` : percent(row.asked), "asked"), cell(times(price[0]), "price", dear(price[0])),
      cell(times(price[1]), "model", dear(price[1])),
      cell(number(row.accounts[0]) + limit, "account"), cell(row.pending, "pending"),
      cell(number(row.width), "width"));
    return tr;
  }));
  $("none").hidden = rows.length > 0;
}

function alarms(items) {
  $("alarms").replaceChildren(...items.map((alarm) => {
    const li = document.createElement("li"), link = document.createElement("a");
    link.textContent = alarm.stream;
    link.href = `#${encodeURIComponent(alarm.stream)}`;
    const at = document.createElement("time");
    at.textContent = new Date(1000 * alarm.at).toLocaleString();
    li.append(link, `: ${alarm.said || `${KINDS[alarm.kind] || alarm.kind}, at label ${alarm.step}`} `, at);
    return li;
  }));
  $("calm").hidden = items.length > 0;
}

async function list() {
  const search = encodeURIComponent($("search").value);
  show(await ask(`v1/streams?limit=200&search=${search}`));
  alarms(await ask("v1/alarms?limit=20"));
  say("live");
}

// One stream

function put(row) {
  if (Array.isArray(row.lower) || typeof row.y === "object") // a path is listed, and not drawn
    row = { id: row.id, made: row.made, covered: row.covered };
  const before = points.find((point) => point.id === row.id);
  if (before) Object.assign(before, row);
  else points.push(row);
  points = points.slice(-MOST);
}

function part(kind, values, type) {
  const node = document.createElementNS(NS, kind);
  for (const [key, value] of Object.entries(values)) node.setAttribute(key, value);
  if (type) node.setAttribute("class", type);
  return node;
}

// Labels have no order of their own: each gets a row, in the order of their names.
function rows() {
  if (!points.some((p) => p.labels)) return null;
  const every = points.flatMap((p) => [...(p.labels || []), p.y]);
  return [...new Set(every.filter((v) => v !== null && v !== undefined).map(String))].sort();
}

// The times of the first, the middle and the last prediction; the day too where they differ.
function axis(nodes, x, height) {
  const last = points.length - 1;
  if (last < 0) return;
  const days = new Set(points.map((p) => new Date(1000 * p.made).toDateString())).size > 1;
  const shown = days ? { dateStyle: "short", timeStyle: "short" } : { timeStyle: "medium" };
  for (const i of new Set(last < 6 ? [0] : [0, last >> 1, last])) {
    const anchor = i === 0 ? "start" : i === last ? "end" : "middle";
    const text = part("text", { x: x(i), y: height - 4, "text-anchor": anchor }, "time");
    text.textContent = new Date(1000 * points[i].made).toLocaleString([], shown);
    nodes.push(text);
  }
}

function draw() {
  const svg = $("chart"), width = svg.clientWidth || 600, height = svg.clientHeight || 256;
  const kinds = rows();
  const ends = kinds ? kinds.map((_, i) => i)
    : points.flatMap((p) => [p.lower, p.upper, p.y]).filter(Number.isFinite);
  const low = Math.min(...ends), high = Math.max(...ends), span = high - low || 1;
  const x = (i) => 55 + ((i + 0.5) * (width - 60)) / Math.max(points.length, 20);
  const y = (v) => 10 + ((high - v) / span) * (height - 36);
  const place = (v) => (kinds ? kinds.indexOf(String(v)) : v);
  const thick = Math.max(2, Math.min(8, (width - 60) / points.length - 3));
  const nodes = [];
  const bar = (i, top, end) => nodes.push(part("line",
    { x1: x(i), x2: x(i), y1: top, y2: end, "stroke-width": thick }, "set"));
  for (const v of !ends.length ? [] : kinds && kinds.length <= 12 ? ends : [low, high]) {
    nodes.push(part("line", { x1: 50, x2: width, y1: y(v), y2: y(v) }, "grid"));
    const text = part("text", { x: 0, y: y(v) + 4 });
    text.textContent = kinds ? kinds[v].slice(0, 7) : number(v);
    nodes.push(text);
  }
  axis(nodes, x, height);
  points.forEach((p, i) => {
    for (const label of p.labels || []) bar(i, y(place(label)) - 5, y(place(label)) + 5);
    if (p.lower !== undefined && !p.empty) {
      bar(i, Number.isFinite(p.upper) ? y(p.upper) : 0,
        Number.isFinite(p.lower) ? y(p.lower) : height);
    }
    if (p.y !== null && p.y !== undefined && Number.isFinite(place(p.y))) {
      const dot = { cx: x(i), cy: y(place(p.y)), r: 3 };
      nodes.push(part("circle", dot, p.covered ? "hit" : "miss"));
    }
  });
  svg.replaceChildren(...nodes);
}

function note(sent, answer) {
  const li = document.createElement("li");
  li.textContent = `${JSON.stringify(sent)} → ${JSON.stringify(answer)}`;
  $("events").prepend(li);
  while ($("events").childElementCount > 50) $("events").lastChild.remove();
}

function arrived(data) {
  const { event, answer } = JSON.parse(data);
  const row = { id: answer.id };
  if ("prediction" in event) Object.assign(row, { lower: answer.lower, upper: answer.upper,
    empty: answer.empty, labels: answer.labels, made: Date.now() / 1000 });
  if ("score" in event) Object.assign(row, { y: event.score, covered: answer.act,
    made: Date.now() / 1000 });
  if ("y" in event) Object.assign(row, { y: event.y, covered: answer.covered });
  if (!answer.repeated) put(row);
  note(event, answer);
  draw();
}

function facts(id, rows) {
  $(id).replaceChildren(...rows.flatMap(([name, text, look]) => {
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = name;
    dd.textContent = text;
    dd.className = look === "bad" ? "miss" : look || "";
    return [dt, dd];
  }));
}

async function details(name) {
  const row = await ask(path(name));
  const certificate = await ask(`${path(name)}/certificate`);
  if (open !== name) return;
  $("alarm").textContent = row.trouble >= 1 ? why(row) : "";
  $("summary").textContent = row.summary.text;
  const signed = (v) => (v > 0 ? `+${number(v)}` : number(v));
  const account = [["account", signed(row.accounts[0])
    + (row.bounds[0] === null ? "" : `, never above ${number(row.bounds[0])}`)],
  ["pending", String(row.pending)]];
  const [sets, model, world] = row.price || [];
  $("sets").hidden = Boolean(row.acted);
  $("gate").hidden = !row.acted;
  if (row.acted) {
    facts("guarantee", [["status", row.status.join(", ")],
      ["acted on, of the last 100", percent(row.acted[0])],
      ["errors, of all requests",
        row.losses.map((loss, i) => `${percent(loss)}, asked ${percent(row.levels[i])}`).join("; ")],
      ...account]);
    facts("price", [["requests for an action", times(sets), dear(sets)]]);
  } else {
    facts("guarantee", [["status", row.status.join(", ")],
      ["coverage", `${percent(row.summary.coverage)}, asked ${percent(row.asked)}`],
      ["last 100", percent(row.coverage[0]), low(row.coverage[0], row.asked)], ...account]);
    facts("price", [[row.summary.measure || "intervals", times(sets), dear(sets)],
      ["model's errors", times(model), dear(model)], ["actual values", times(world)]]);
  }
  $("certificate").textContent = certificate.text;
  const told = row.pending ? await ask(`${path(name)}/explain`).catch(() => null) : null;
  if (open !== name) return;
  $("why").hidden = told === null;
  if (told !== null) facts("explained", told.lines);
}

async function events(name, signal) {
  // Not EventSource: it cannot send a token.
  const answer = await fetch(`${path(name)}/live`, { headers: headers(), signal });
  if (!answer.ok) throw new Error("the stream cannot be followed");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  say("live");
  for (let rest = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const item of parts) if (item.startsWith("data: ")) arrived(item.slice(6));
  }
}

async function watch(name) {
  const stop = new AbortController();
  follow = stop;
  $("name").textContent = name;
  $("events").replaceChildren();
  points = [];
  while (!stop.signal.aborted) {
    try {
      await details(name);
      if (stop.signal.aborted) return;
      const past = await ask(`${path(name)}/history?limit=${MOST}`);
      if (stop.signal.aborted) return;
      past.forEach((p) => put("act" in p.shown
        ? { id: p.id, y: p.prediction, covered: p.shown.act, made: p.made }
        : { id: p.id, lower: p.shown.lower, upper: p.shown.upper,
          empty: p.shown.empty, labels: p.shown.labels, y: p.y, covered: p.covered,
          made: p.made }));
      draw();
      await events(name, stop.signal);
    } catch (error) {
      if (stop.signal.aborted) return;
      say(error.message);
    }
    await new Promise((done) => setTimeout(done, 2000));
  }
}

// What is on the page

function turn() {
  if (follow) follow.abort();
  try { open = decodeURIComponent(location.hash.slice(1)) || null; } catch { open = null; }
  $("list").hidden = open !== null;
  $("stream").hidden = open === null;
  if (open !== null) watch(open);
  else tick();
}

async function tick() {
  try {
    if (open === null) await list();
    else await details(open);
  } catch (error) { say(error.message); }
}

$("key").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value;
  sessionStorage.setItem("token", token);
  turn();
});
$("search").addEventListener("input", tick);
window.addEventListener("hashchange", turn);
window.addEventListener("resize", draw);
setInterval(tick, 2000);
turn();
