"use strict";
// Everything that comes from the exporter is put in by textContent. Elements are kept and changed, so that a reader's place
// and selection stay where they are.

const $ = (id) => document.getElementById(id);
const samples = [];      // changes a second, oldest first
const mostSamples = 60;
const mostChanges = 50;
let before = null;       // {records, time} of the last status
let paused = false;

function element(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

// roled says what an element is, also where the style of a small screen makes it no table.
function roled(tag, role, className, text) {
  const e = element(tag, className, text);
  e.setAttribute("role", role);
  return e;
}

// setText leaves an element alone that says so already: live regions would say it again.
function setText(e, text) { if (e.textContent !== text) e.textContent = text; }
function setClass(e, name) { if (e.className !== name) e.className = name; }

const plural = (n, one, many) => count(n) + " " + (n === 1 ? one : many);
const count = (n) => Number(n || 0).toLocaleString("en");

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (n = Number(n || 0); n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return (i === 0 || n >= 100 ? n.toFixed(0) : n.toFixed(1)) + " " + units[i];
}

function span(seconds) {
  if (!(seconds >= 0)) return "–";
  if (seconds < 1) return "< 1 s";
  if (seconds < 120) return Math.round(seconds) + " s";
  if (seconds < 7200) return Math.round(seconds / 60) + " min";
  if (seconds < 172800) return Math.round(seconds / 3600) + " h";
  return Math.round(seconds / 86400) + " d";
}

const since = (time) => span((Date.now() - Date.parse(time)) / 1000);
const clock = (time) => new Date(time).toLocaleTimeString("en-GB");

// keyed makes one child for each name, in order, and removes those whose name is gone.
function keyed(parent, names, make, fill) {
  const have = new Map();
  for (const child of [...parent.children]) {
    if (names.includes(child.dataset.key)) have.set(child.dataset.key, child); else child.remove();
  }
  names.forEach((name, i) => {
    let child = have.get(name);
    if (!child) { child = make(name); child.dataset.key = name; }
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] || null);
    fill(child, name);
  });
}

function pill(e, state) {
  const kind = { watching: "good", open: "good", failing: "bad", stopped: "bad", "held up": "bad" }[state] || "wait";
  setText(e, state || "unknown");
  setClass(e, "pill " + kind);
}

// ---- overview

const fails = (sink) => sink.state === "failing" || sink.state === "stopped" || Boolean(sink.failingSince);

// healthOf is the worst that is true. It says delivering only where every stream is watched and every sink takes records.
function healthOf(s) {
  const sinks = Object.values(s.sinks || {}), streams = Object.values(s.streams || {});
  const is = (all, state) => all.filter((k) => k.state === state).length;
  const failing = sinks.filter(fails).length, held = streams.filter((k) => k.heldBy).length;
  const unread = is(streams, "failing") + is(streams, "waiting"), behind = sinks.filter((k) => k.spoolRecords || k.oldestUnackedSeconds > 60).length;
  if (!s.healthy) return ["unhealthy", "bad"];
  if (is(sinks, "stopped")) return [plural(is(sinks, "stopped"), "sink is stopped", "sinks are stopped"), "bad"];
  if (s.state && s.state.lastError) return ["the state is not saved", "bad"];
  if (!s.ready && !is(streams, "failing")) return ["starting", "wait"];
  if (failing) return [plural(failing, "sink fails", "sinks fail"), "bad"];
  if (unread) return [plural(unread, "stream is not read", "streams are not read"), "bad"];
  if (held) return [plural(held, "stream is held up", "streams are held up"), "bad"];
  if (is(streams, "starting") || is(streams, "snapshot")) return ["taking snapshots", "wait"];
  if (behind) return [plural(behind, "sink is behind", "sinks are behind"), "wait"];
  if (!streams.length) return ["nothing to stream", "wait"];
  return ["delivering", "good"];
}

function showHealth(s) {
  const [text, kind] = healthOf(s);
  setText($("health"), text);
  setClass($("health"), "pill " + kind);
  const problems = [...(s.problems || [])];
  if (s.state && s.state.lastError) problems.push("The state is not saved since " + clock(s.state.failingSince) + ": " + s.state.lastError);
  if (s.state && s.state.savedAgain && !s.state.lastError && Date.now() - Date.parse(s.state.savedAgain) < 600000) problems.push("The state is saved again since " + clock(s.state.savedAgain) + ".");
  banner(problems.join("\n"));
}

function banner(text) {
  setText($("banner"), text);
  $("banner").hidden = !text;
}

function showRate(s) {
  let records = 0;
  for (const stream of Object.values(s.streams || {})) records += stream.records || 0;
  const now = performance.now();
  if (before && records >= before.records && now > before.time) samples.push((records - before.records) * 1000 / (now - before.time));
  if (samples.length > mostSamples) samples.shift();
  before = { records, time: now };
  if (!samples.length) return;
  const rate = samples[samples.length - 1];
  setText($("rate"), rate < 10 && rate > 0 ? rate.toFixed(1) : count(Math.round(rate)));
  const top = Math.max(1, ...samples);
  const points = samples.map((v, i) => ((i + mostSamples - samples.length) * 240 / (mostSamples - 1)).toFixed(1) + "," + (45 - v / top * 42).toFixed(1));
  $("line").setAttribute("points", points.join(" "));
  $("area").setAttribute("points", points.length < 2 ? "" : points[0].split(",")[0] + ",48 " + points.join(" ") + " 240,48");
  $("spark").setAttribute("aria-label", "Changes a second in the last minute: now " + Math.round(rate) + ", at most " + Math.round(top));
}

function showTiles(s) {
  let oldest = "", age = -1, gaps = 0, last = null, soonest = {};
  for (const [name, stream] of Object.entries(s.streams || {})) {
    if (stream.positionAgeSeconds > age) { age = stream.positionAgeSeconds; oldest = name; }
    gaps += stream.gaps || 0;
    if (leftShare(stream) < leftShare(soonest)) soonest = stream;
    if (stream.lastGap && (!last || stream.lastGap.time > last.time)) last = stream.lastGap;
  }
  setText($("age"), span(age));
  setText($("ageHint"), oldest);
  let records = 0, waiting = 0;
  for (const sink of Object.values(s.sinks || {})) {
    records += (sink.queueRecords || 0) + (sink.spoolRecords || 0);
    waiting = Math.max(waiting, sink.oldestUnackedSeconds || 0);
  }
  setText($("waiting"), count(records));
  setText($("waitingHint"), [records ? "the oldest for " + span(waiting) : "nothing is queued", ends(soonest)].filter(Boolean).join("; "));
  setText($("gaps"), count(gaps));
  setText($("gapsHint"), last ? gapText(last) + " of " + last.stream : "none since the start");
}

// ---- sinks

function makeSink(name) {
  const card = element("article", "card");
  const top = element("div", "top");
  top.append(element("h3", "", name), element("span", "pill wait"));
  card.append(top, element("p", "hint place"), element("p", "hint told"), makeBar("In memory"), makeBar("On disk"), element("p", "problem bad"), element("ul", "gaps"));
  return card;
}

function makeBar(label) {
  const bar = element("div", "bar");
  const text = element("div", "label");
  text.append(element("span", "", label), element("span"));
  const track = element("div", "track");
  track.setAttribute("role", "meter");
  track.setAttribute("aria-label", label);
  track.setAttribute("aria-valuemin", "0");
  track.append(element("div"));
  bar.append(text, track);
  return bar;
}

function fillBar(bar, used, limit, text) {
  const part = limit > 0 ? Math.min(1, used / limit) : used > 0 ? 1 : 0;
  setText(bar.querySelector(".label span:last-child"), text);
  const track = bar.querySelector(".track");
  track.setAttribute("aria-valuemax", String(limit || Math.max(used, 1)));
  track.setAttribute("aria-valuenow", String(Math.min(used, limit || used)));
  track.setAttribute("aria-valuetext", text);
  track.firstChild.style.width = (part * 100).toFixed(1) + "%";
  setClass(track.firstChild, part > 0.9 && limit > 0 ? "full" : "");
}

// fillMemory shows the queue by the limit that it is nearer to: of bytes or of records.
function fillMemory(bar, sink, limit, most) {
  const records = sink.queueRecords || 0, size = sink.queueBytes || 0;
  if (most && records / most > size / (limit || Infinity)) fillBar(bar, records, most, count(records) + " of " + plural(most, "record", "records") + ", " + bytes(size));
  else fillBar(bar, size, limit, waits(records, size, limit));
}

function fillSink(card, sink, limit, most, room) {
  pill(card.querySelector(".pill"), fails(sink) && sink.state === "open" ? "failing" : sink.state);
  setText(card.querySelector(".place"), [sink.kind, sink.address, sink.format].filter(Boolean).join(" · "));
  setText(card.querySelector(".told"), plural(sink.records, "record", "records") + " delivered" + (sink.note ? "; " + sink.note : ""));
  const [memory, disk] = card.querySelectorAll(".bar");
  fillMemory(memory, sink, limit, most);
  disk.hidden = !room && !sink.spoolBytes;
  if (!disk.hidden) fillBar(disk, sink.spoolBytes || 0, room, waits(sink.spoolRecords, sink.spoolBytes, room));
  const problem = card.querySelector(".problem");
  setText(problem, fails(sink) ? outageText(sink) : "");
  problem.hidden = !problem.textContent;
  const gaps = sink.recentGaps || [];
  keyed(card.querySelector(".gaps"), gaps.map((g) => g.time + g.stream + (g.object || "")), makeGap, (item, name) => fillGap(item, gaps.find((g) => g.time + g.stream + (g.object || "") === name)));
}

const waits = (records, size, limit) => plural(records || 0, "record", "records") + ", " + bytes(size) + (limit ? " of " + bytes(limit) : "");

function outageText(sink) {
  const start = sink.failingSince ? "for " + since(sink.failingSince) + ", since " + clock(sink.failingSince) : "";
  return [[sink.state === "stopped" ? "stopped" : "failing", start].filter(Boolean).join(" "), sink.lastError].filter(Boolean).join(": ");
}

// ---- gaps

const runbook = "https://github.com/kubecdc/kubecdc/blob/main/docs/operating.md#";

function gapText(gap) {
  const what = (gap.object ? gap.object + ": " : "") + (gap.rejected || gap.reason) + ", " + since(gap.time) + " ago";
  return what + (gap.resolved ? "; resolved, sent again " + since(gap.resolved) + " ago" : "");
}

function makeGap() {
  const item = element("li");
  const link = element("a", "", "what to do");
  link.target = "_blank";
  link.rel = "noreferrer";
  item.append(element("span"), " ", link);
  return item;
}

function fillGap(item, gap) {
  setText(item.firstChild, "Gap of " + gap.stream + ": " + gapText(gap));
  setClass(item, gap.resolved ? "resolved" : "");
  item.lastChild.hidden = Boolean(gap.resolved);
  item.lastChild.href = runbook + (gap.reason === "policy" ? "kubecdcrejected" : "kubecdcgap");
}

// ---- streams

const leftShare = (stream) => stream.historySeconds ? stream.historyLeftSeconds / stream.historySeconds : 1;

// ends says when the API server's history does, for a stream that has stood still for a fifth of it.
function ends(stream) {
  const left = stream.historyLeftSeconds;
  if (!(leftShare(stream) < 0.8)) return "";
  return left > 0 ? "history ends in about " + span(left) : "history may have ended";
}

function makeStream(name) {
  const row = roled("tr", "row");
  const title = roled("th", "rowheader");
  title.scope = "row";
  title.append(element("span", "name", name), makeProgress(), element("span", "hint"), element("small"));
  row.append(title);
  for (const [label, className] of [["State", ""], ["Position", "number"], ["Age", "number"], ["Records", "number"], ["Last snapshot", ""], ["Last gap", ""]]) {
    const cell = roled("td", "cell", className);
    cell.dataset.label = label;
    row.append(cell);
  }
  row.children[1].append(element("span", "pill wait"));
  row.children[3].append(element("span"), element("small"));
  return row;
}

function makeProgress() {
  const bar = element("progress");
  bar.max = 100;
  bar.hidden = true;
  bar.setAttribute("aria-label", "Snapshot");
  return bar;
}

// fillSnapshot shows how far a snapshot is: in percent, where the API server says how many objects there are.
function fillSnapshot([, bar, text], snapshot) {
  const known = Boolean(snapshot) && snapshot.percent !== undefined;
  bar.hidden = !known;
  if (known) bar.value = snapshot.percent;
  const sinks = snapshot && snapshot.sinks ? " for " + snapshot.sinks.join(", ") : "";
  const limits = snapshot && snapshot.limits ? " of " + ["namespace", "name", "selector"].map((k) => snapshot.limits[k]).filter(Boolean).join(", ") : "";
  setText(text, snapshot ? snapshot.reason + " snapshot" + limits + sinks + ": " + (known ? snapshot.percent + "%" : plural(snapshot.objects, "object", "objects")) : "");
}

function fillStream(row, stream) {
  const [title, state, position, age, records, reconcile, gap] = row.children;
  const held = stream.heldBy ? "held up by " + stream.heldBy.join(", ") + " since " + clock(stream.heldSince) : "";
  setText(title.lastChild, [stream.state === "failing" || stream.state === "waiting" ? stream.lastError : "", held].filter(Boolean).join("; "));
  pill(state.firstChild, stream.heldBy && stream.state === "watching" ? "held up" : stream.state);
  fillSnapshot(title.children, stream.snapshot);
  setText(position, stream.resourceVersion || "–");
  setText(age.firstChild, stream.resourceVersion ? span(stream.positionAgeSeconds) : "–");
  setText(age.lastChild, ends(stream));
  setText(records, count(stream.records));
  const r = stream.lastSnapshot;
  setText(reconcile, r ? r.reason + ", " + since(r.time) + " ago: " + count(r.replaced) + " replaced, " + count(r.deleted) + " deleted" + (r.synced ? ", " + count(r.synced) + " synced" : "") : "–");
  setText(gap, stream.lastGap ? gapText(stream.lastGap) : "none");
}

// showLeft names what is configured, or covered by a wildcard, and not streamed.
function showLeft(left) {
  const names = Object.keys(left).sort();
  $("left").hidden = !names.length;
  setText($("leftCount"), plural(names.length, "resource is", "resources are") + " not streamed");
  keyed($("leftRows"), names, () => element("li"), (item, name) => setText(item, name + ": " + left[name]));
}

// showLeader says who leads, where several exporters share a task.
function showLeader(ha) {
  $("leads").hidden = !ha;
  if (!ha) return;
  const when = ha.leader && ha.since ? ", since " + clock(ha.since) + " on " + new Date(ha.since).toLocaleDateString() : "";
  const leads = ha.leads ? "This exporter leads" : "This exporter stands by; " + (ha.leader ? ha.leader + " leads" : "nobody leads");
  const b = ha.standby;
  const behind = !b ? "" : b.lastError ? ". It cannot follow the log of the state: " + b.lastError : b.whole ? ". It follows the log of the state, " + span(b.lagSeconds) + " behind" : ". It reads the log of the state for the first time";
  setText($("leads"), leads + when + behind + ". Lease " + ha.lease + (ha.lastError ? ": the API server does not answer for it: " + ha.lastError : "") + ".");
}

// ---- events

function showStatus(message) {
  const { status: s, queues = {}, records = {}, spools = {} } = JSON.parse(message.data);
  setText($("cluster"), s.cluster || "kubecdc");
  setText($("version"), "kubecdc exporter " + (s.version || ""));
  document.title = (s.cluster ? s.cluster + " – " : "") + "kubecdc exporter";
  setText($("uptime"), "running for " + span(s.uptimeSeconds));
  showLeader(s.ha);
  showHealth(s);
  showRate(s);
  showTiles(s);
  const sinks = s.sinks || {}, streams = s.streams || {};
  keyed($("sinkCards"), Object.keys(sinks).sort(), makeSink, (card, name) => fillSink(card, sinks[name], queues[name] || 0, records[name] || 0, spools[name] || 0));
  const names = Object.keys(streams).sort();
  setText($("streamCount"), String(names.length));
  showLeft((s.discovery || {}).leftOut || {});
  keyed($("streamRows"), names, makeStream, (row, name) => fillStream(row, streams[name]));
}

function showChanges(message) {
  if (paused) return;
  const { changes } = JSON.parse(message.data);
  const rows = $("changeRows");
  for (const c of changes.slice(-mostChanges)) {
    const row = roled("tr", "row");
    const time = roled("td", "cell", "nowrap quiet", clock(c.time));
    const op = roled("td", "cell", "op " + (["added", "updated", "deleted", "gap"].includes(c.op) ? c.op : ""), c.op);
    row.append(time, op, roled("td", "cell", "", c.resource), roled("td", "cell", "", c.name ? (c.namespace ? c.namespace + "/" : "") + c.name : c.reason || ""));
    rows.prepend(row);
  }
  while (rows.children.length > mostChanges) rows.lastChild.remove();
}

function listen() {
  const source = new EventSource("events");
  source.onopen = () => { if (!paused) $("changeRows").replaceChildren(); }; // what was shown comes again
  source.addEventListener("status", (m) => { showStatus(m); });
  source.addEventListener("changes", showChanges);
  source.addEventListener("private", (m) => {
    setText($("private"), "Names of objects are kept back: " + JSON.parse(m.data));
    $("private").hidden = false;
    $("changes").parentElement.hidden = true;
    $("pause").hidden = true;
  });
  source.onerror = () => {
    setText($("health"), "no connection");
    setClass($("health"), "pill bad");
    // A browser tries again by itself, unless it was refused.
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  };
}

$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  setText($("pause"), paused ? "Continue" : "Pause");
});
listen();
