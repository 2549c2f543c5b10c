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
const none = (x) => x === null || x === undefined;
const percent = (x) => (none(x) ? "–" : `${(100 * x).toFixed(1)}\u00a0%`);
const number = (x) => (none(x) ? "–" : Math.abs(x) < 1e6 ? String(Number(x.toPrecision(4))) : x.toExponential(2));
const times = (x) => (none(x) ? "–" : `${number(Number(x.toPrecision(2)))}\u00a0×`);
const tenths = (x) => { // of misses; with a sign that cannot be taken for a dash
  const text = Math.abs(x).toFixed(1).replace(".0", "");
  return text === "0" ? text : (x < 0 ? "−" : "+") + text;
};
const when = (at) => new Date(1000 * at).toLocaleString();
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
  const age = (kind) => (kind === "silence" ? `: the oldest prediction has waited since ${when(row.oldest)}` : "");
  return kinds.length ? kinds.map((kind) => KIND[kind] + age(kind)).join("; ") : status(row);
}
const status = (row) => [...new Set(row.status)].join(", ");
const dear = (x) => (x > 2.5 ? "bad" : x > 1.5 ? "warn" : "");
function low(share, asked) {
  if (share === null || asked === null || share === undefined) return "";
  return share < asked - 0.1 ? "bad" : share < asked - 0.05 ? "warn" : "";
}

// A line from the lowest to the highest value, with another one at what is asked.
function spark(values, what, [low, high], asked, look) {
  const svg = part("svg", { viewBox: "0 0 60 20", role: "img",
    "aria-label": `${what}: ${values.map(number).join(", ")}` }, "spark");
  const x = (i) => 3 + (54 * i) / Math.max(values.length - 1, 1);
  const y = (value) => 17.5 - (15 * (value - low)) / (high - low || 1);
  if (!none(asked)) svg.append(part("line", { x1: 0, x2: 60, y1: y(asked), y2: y(asked) }, "grid"));
  svg.append(part("polyline", { points: values.map((v, i) => `${x(i)},${y(v)}`).join(" ") }, look));
  const last = values.length - 1;
  svg.append(part("circle", { cx: x(last), cy: y(values[last]), r: 2.2 }, look || "hit"));
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
    const limit = none(row.bounds[0]) ? "" : `\u00a0of\u00a0${number(row.bounds[0])}`;
    const price = row.price || [], shares = row.acted || row.coverage;
    const share = (n) => (row.acted ? "acts on " : "") + percent(shares[n]);
    const lately = cell(share(1), "last 1,000", low(row.coverage[1], row.asked));
    if (row.past.length) {
      const least = none(row.asked) ? 0 : Math.max(0, Math.min(row.asked - 0.1, ...row.past));
      lately.classList.add("drawn");
      lately.prepend(spark(row.past, row.acted ? "share acted on" : "coverage", [least, 1], row.asked,
        low(row.past.at(-1), row.asked)));
    }
    const wide = cell(number(row.width && Number(row.width.toPrecision(3))), "width", "drawn");
    if (row.widths.length) wide.prepend(spark(row.widths, "width", [0, Math.max(...row.widths)], null, dear(price[0])));
    tr.append(first, cell(share(0), "last 100", low(row.coverage[0], row.asked)), lately,
      cell(row.acted ? `errors ≤ ${percent(row.levels[0])}` : percent(row.asked), "asked"), cell(times(price[0]), "price", dear(price[0])),
      cell(times(price[1]), "model", dear(price[1])),
      cell(tenths(row.accounts[0]) + limit, "account"), cell(row.pending, "pending"), wide);
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
    at.textContent = when(alarm.at);
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
  if (Array.isArray(row.lower)) { // of paths the last one is drawn, step by step
    points = row.lower.map((lower, i) => ({ id: row.id, step: i + 1, lower, upper: row.upper[i] }));
    for (const [step, y] of Object.entries(row.y || {})) came(row.id, Number(step), y);
    return;
  }
  if (points.length && points[0].step) return came(row.id, row.step || 0, row.y);
  const before = points.find((point) => point.id === row.id);
  if (before) Object.assign(before, row);
  else points.push(row);
  points = points.slice(-MOST);
}

// The actual value of a step of a path; of all of them if the step is 0.
function came(id, step, y) {
  for (const p of points.filter((p) => p.id === id && (p.step === step || !step))) {
    p.y = Array.isArray(y) ? y[p.step - 1] : y;
    p.covered = (none(p.lower) || p.lower <= p.y) && (none(p.upper) || p.y <= p.upper);
  }
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
  return [...new Set(every.filter((v) => !none(v)).map(String))].sort();
}

// The times of the first, the middle and the last prediction, with the day where they differ; of a
// path the steps.
function axis(nodes, points, x, height) {
  const last = points.length - 1;
  if (last < 0) return;
  const days = new Set(points.map((p) => new Date(1000 * p.made).toDateString())).size > 1;
  const shown = days ? { dateStyle: "short", timeStyle: "short" } : { timeStyle: "medium" };
  for (const i of new Set(last < 6 ? [0] : [0, last >> 1, last])) {
    const anchor = i === 0 ? "start" : i === last ? "end" : "middle";
    const text = part("text", { x: x(i), y: height - 4, "text-anchor": anchor }, "time");
    text.textContent = points[i].step ? `step ${points[i].step}`
      : new Date(1000 * points[i].made).toLocaleString([], shown);
    nodes.push(text);
  }
}

function draw() {
  const svg = $("chart"), width = svg.clientWidth || 600, height = svg.clientHeight || 256;
  const kinds = rows(), seen = points.slice(-Math.floor((width - 60) / 5));
  const ends = kinds ? kinds.map((_, i) => i)
    : seen.flatMap((p) => [p.lower, p.upper, p.y]).filter(Number.isFinite);
  const low = Math.min(...ends), high = Math.max(...ends), span = high - low || 1;
  const x = (i) => 55 + ((i + 0.5) * (width - 60)) / Math.max(seen.length, 20);
  const y = (v) => 10 + ((high - v) / span) * (height - 36);
  const place = (v) => (kinds ? kinds.indexOf(String(v)) : v);
  const thick = Math.max(2, Math.min(8, (width - 60) / seen.length - 3));
  const nodes = [];
  const bar = (i, top, end) => nodes.push(part("line",
    { x1: x(i), x2: x(i), y1: top, y2: end, "stroke-width": thick }, "set"));
  for (const v of !ends.length ? [] : kinds && kinds.length <= 12 ? ends : [low, high]) {
    nodes.push(part("line", { x1: 50, x2: width, y1: y(v), y2: y(v) }, "grid"));
    const text = part("text", { x: 0, y: y(v) + 4 });
    text.textContent = kinds ? kinds[v].slice(0, 7) : number(v);
    nodes.push(text);
  }
  axis(nodes, seen, x, height);
  seen.forEach((p, i) => {
    for (const label of p.labels || []) bar(i, y(place(label)) - 5, y(place(label)) + 5);
    if (p.lower !== undefined && !p.empty) {
      bar(i, Number.isFinite(p.upper) ? y(p.upper) : 0,
        Number.isFinite(p.lower) ? y(p.lower) : height);
    }
    if (!none(p.y) && Number.isFinite(place(p.y))) {
      const dot = { cx: x(i), cy: y(place(p.y)), r: 3 };
      nodes.push(part("circle", dot, p.covered ? "hit" : p.gate ? "off" : "miss"));
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
  if ("score" in event) Object.assign(row, { y: event.score, covered: answer.act, gate: true,
    made: Date.now() / 1000 });
  if ("y" in event) Object.assign(row, { y: event.y, step: event.step, covered: answer.covered });
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

// A text for a terminal as a list that fits any screen: a name, two spaces or more, what is said of
// it, which goes on in lines that begin below it; other lines are headings.
function listed(id, text) {
  let column = -1;
  $(id).replaceChildren(...text.split("\n").filter((line) => line.trim()).flatMap((line) => {
    const pair = /^( *\S+(?: \S+)*  +)(.*)$/.exec(line), indent = line.search(/\S/);
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    if (pair) column = pair[1].length;
    dt.textContent = (pair ? pair[1] : line).trim();
    dd.textContent = (pair ? pair[2] : line).trim();
    if (pair) return [dt, dd];
    if (indent === column) return [dd];
    dt.className = "whole";
    return [dt];
  }));
}

async function details(name) {
  const row = await ask(path(name));
  const certificate = await ask(`${path(name)}/certificate`);
  const alarms = row.trouble >= 1 ? await ask("v1/alarms?limit=200") : [];
  if (open !== name) return;
  const lasting = alarms.find((one) => one.stream === name && one.kind in row.alarms && one.said);
  $("alarm").textContent = lasting ? `${lasting.said} (${when(lasting.at)})` : row.trouble >= 1 ? why(row) : "";
  listed("summary", row.summary.text);
  const account = [["account", tenths(row.accounts[0])
    + (none(row.bounds[0]) ? "" : `, never above ${number(row.bounds[0])}`)],
  ["pending", String(row.pending)]];
  const [sets, model, world] = row.price || [];
  $("sets").hidden = Boolean(row.acted);
  $("gate").hidden = !row.acted;
  if (row.acted) {
    facts("guarantee", [["status", status(row)],
      ["acted on, of the last 100", percent(row.acted[0])],
      ["errors, of all requests",
        row.losses.map((loss, i) => `${percent(loss)}, asked ${percent(row.levels[i])}`).join("; ")],
      ...account]);
    facts("price", [["requests for an action", times(sets), dear(sets)]]);
  } else {
    facts("guarantee", [["status", status(row)],
      ["coverage", `${percent(row.summary.coverage)}, asked ${percent(row.asked)}`],
      ["last 100", percent(row.coverage[0]), low(row.coverage[0], row.asked)], ...account]);
    facts("price", [[row.summary.measure || "intervals", times(sets), dear(sets)],
      ["model's errors", times(model), dear(model)], ["actual values", times(world)]]);
  }
  listed("certificate", certificate.text);
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
        ? { id: p.id, y: p.prediction, covered: p.shown.act, gate: true, made: p.made }
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
