"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const narrow = window.matchMedia("(max-width: 700px)");
  const MAX_ROWS = 400;
  const KEYS = [
    ["→ ←, l h, space", "next, previous step"], ["PgDn PgUp", "ten steps on, back"],
    ["Home End, g G", "first, last step"], ["v V", "next, previous step that breaks something new"],
    ["c C", "next, previous change of the row you clicked"], ["/", "filter"], ["n N", "next, previous step with its words"],
    ["?", "these keys"], ["Esc", "leave a field"],
  ];
  const steps = data.steps;
  const states = rebuild();
  const indexOf = new Map(steps.map((step, index) => [step.n, index]));
  const violating = steps.map((step, index) => (step.fresh.length ? index : -1)).filter((index) => index >= 0);
  let here = 0, follow = "", words = "";

  // Each step has what it changes; views that stay the same are shared between steps.
  function rebuild() {
    const found = [];
    const maps = { slots: new Map(), nodes: new Map(), requests: new Map() };
    const ids = { slots: [], nodes: [], requests: [] };
    for (const step of steps) {
      const state = {};
      for (const name of Object.keys(maps)) {
        for (const view of step[name]) maps[name].set(view.id, view);
        const given = step[name + "Ids"];
        if (given) ids[name] = given;
        state[name] = given || step[name].length || !found.length
          ? ids[name].map((id) => maps[name].get(id)) : found[found.length - 1][name];
      }
      found.push(state);
    }
    return found;
  }

  // -- drawing: text only, never markup ------------------------------------------------------------------

  function make(tag, kind, text) {
    const element = document.createElement(tag);
    if (kind) element.className = kind;
    if (text !== undefined && text !== null) element.textContent = String(text);
    return element;
  }
  function fill(id, children) {
    at(id).querySelector("div").replaceChildren(...children);
  }
  function table(heads, rows) {
    const element = make("table"), head = make("tr");
    for (const name of heads) head.append(make("th", "", name));
    element.append(head, ...rows.slice(0, MAX_ROWS));
    if (rows.length > MAX_ROWS) {
      const row = make("tr"), cell = make("td", "dim", "and " + (rows.length - MAX_ROWS) + " more");
      cell.colSpan = heads.length;
      row.append(cell);
      element.append(row);
    }
    return element;
  }
  function row(id, mark, cells) {
    const element = make("tr", "can" + (mark ? " changed" : "") + (id === follow ? " follow" : ""));
    element.dataset.id = id;
    element.append(make("td", "new", mark || " "), ...cells);
    element.addEventListener("click", () => { follow = follow === id ? "" : id; draw(); });
    return element;
  }
  function gauge(filled, length) {
    const cells = Math.min(length, narrow.matches ? 8 : 32);
    const full = Math.min(cells, Math.ceil(filled * cells / length));
    return "■".repeat(full) + "□".repeat(cells - full) + " " + filled + "/" + length;
  }
  const isBroken = (step, id) => step.broken.some(([, subject]) => subject === id);

  function drawWhat(step) {
    const parts = [make("div", "action", step.action)];
    const before = here ? steps[here - 1].n + 1 : data.first;
    if (step.n > before) parts.push(make("div", "dim", "(steps " + before + ".." + (step.n - 1) + " are not on this page)"));
    for (const [failed, line, message] of step.judged) {
      parts.push(make("div", failed ? "bad" : "good",
        (failed ? "✗ line " + line + ": " + message : "✓ as the scenario expects (line " + line + ")")));
    }
    for (const sentence of step.told) parts.push(make("div", "", sentence));
    at("what").querySelector("h2").textContent =
      "step " + step.n + (step.line ? " (line " + step.line + " of the scenario)" : "");
    fill("what", parts);
  }
  function drawTree(step, state) {
    const below = new Map(), known = new Set(state.nodes.map((node) => node.id));
    for (const node of state.nodes) {
      const parent = known.has(node.parent) ? node.parent : null;
      if (!below.has(parent)) below.set(parent, []);
      below.get(parent).push(node);
    }
    const rows = [], todo = (below.get(null) || []).map((node) => [node, 0]).reverse();
    while (todo.length) {
      const [node, depth] = todo.pop();
      const name = make("td", isBroken(step, node.id) ? "bad" : "state",
        "  ".repeat(Math.min(depth, 12)) + (node.slot === null ? "○ " : "● ") + node.id);
      name.style.whiteSpace = "pre";
      const state_ = node.slot === null ? make("td", "dim", "no state")
        : make("td", node.apart ? "bad" : "state", node.state + (node.conv === node.state ? "" : " conv " + node.conv));
      rows.push(row(node.id, step.mark.nodes[node.id], [name, make("td", "", node.key), state_,
        make("td", "", node.slot === null ? "" : node.slot), make("td", "new", node.locks)]));
      const children = below.get(node.id) || [];
      const deeper = children.length > 1 ? depth + 1 : depth;
      for (const child of children.slice().reverse()) todo.push([child, deeper]);
    }
    fill("tree", [rows.length ? table(["", "node", "key", "state", "slot", "locks"], rows) : make("div", "dim", "empty"),
      ...gone(step, "nodes")]);
  }
  function drawSlots(step, state) {
    const rows = state.slots.map((slot) => row(slot.id, step.mark.slots[slot.id], [
      make("td", isBroken(step, slot.id) ? "bad" : "", slot.name), make("td", slot.odd ? "bad" : "", slot.owner),
      make("td", "state", slot.temporal), make("td", slot.conv === slot.temporal || slot.cursor ? "" : "bad", slot.conv),
      make("td", slot.cursor ? "new" : "dim",
        slot.where || (slot.cursor === null || step.ring === null ? "off" : gauge(slot.cursor, step.ring))),
    ]));
    fill("slots", [table(["", "slot", "owner", "temporal", "conv", "ring"], rows),
      ...step.free.map((words) => make("div", "dim", words)),
      make("div", "dim", "key-value " + step.kv[0] + " of " + step.kv[1] + " free")]);
  }
  function drawRequests(step, state) {
    const rows = state.requests.map((request) => {
      const [committed, executed, scheduled] = request.lengths;
      const ahead = scheduled > committed ? " (executed " + executed + ", scheduled " + scheduled + ")" : "";
      const more = [...request.stamps.map((stamp) => "stamp " + stamp), ...(request.pins ? ["pins " + request.pins] : []),
        ...(request.copy ? ["copy " + request.copy.join(" → ") + " pending"] : [])];
      return row(request.id, step.mark.requests[request.id], [
        make("td", isBroken(step, request.id) ? "bad" : "", request.id.slice(8)), make("td", "dim", request.phase),
        make("td", "", committed + ahead), make("td", "", request.cached + " of " + request.prompt),
        make("td", "", request.slots.join(" ")), make("td", "wrap", more.join("; "))]);
    });
    fill("requests", [rows.length ? table(["", "request", "phase", "committed", "cached", "slots", ""], rows)
      : make("div", "dim", "no request is running"), ...gone(step, "requests"),
      ...step.outside.map((sentence) => make("div", "", sentence))]);
  }
  function gone(step, name) {
    return Object.entries(step.mark[name]).filter(([, mark]) => mark === "-")
      .map(([id]) => make("div", "dim", "- " + id + " is gone"));
  }
  function drawInvariants(step) {
    const by = new Map();
    for (const [invariant, subject] of step.broken) by.set(invariant, [...(by.get(invariant) || []), subject]);
    const fresh = new Set(step.fresh.map((violation) => violation.invariant));
    const parts = [...by].map(([invariant, named]) => {
      const line = make("div");
      line.append(make("span", "bad", "✗ " + invariant), make("span", "", ": " + named.join(", ")),
        make("span", "dim", fresh.has(invariant) ? "" : " (still)"));
      return line;
    });
    const rest = data.invariants - by.size;
    parts.push(make("div", "good", "✓ " + (by.size ? rest + " others hold" : "all " + rest + " invariants hold")));
    fill("invariants", parts);
  }
  function drawWhy(step) {
    const told = new Set();
    const parts = step.fresh.map((violation) => {
      const element = make("div", "violation"), numbers = make("p");
      numbers.append(make("span", "bad", "✗ " + violation.invariant), make("span", "", ", " + violation.subject + ": "),
        make("span", "bad", violation.found), make("span", "", ", expected " + violation.expected));
      element.append(numbers, ...violation.proof.map((sentence) => make("p", "proof", sentence)));
      const key = JSON.stringify(violation.chain);
      if (violation.chain.length && !told.has(key)) {
        told.add(key);
        const list = make("dl");
        for (const [label, text] of violation.chain) list.append(make("dt", "", label), make("dd", "", text));
        element.append(list);
      }
      return element;
    });
    if (step.more) parts.push(make("p", "dim", "and " + step.more + " more violations"));
    at("why").className = parts.length ? "" : "quiet";
    fill("why", parts);
  }
  function draw() {
    const step = steps[here], state = states[here];
    drawWhat(step); drawWhy(step); drawTree(step, state); drawSlots(step, state);
    drawRequests(step, state); drawInvariants(step);
    at("slider").value = String(here);
    if (document.activeElement !== at("number")) at("number").value = String(step.n);
    at("followed").textContent = follow ? "following " + follow + " (c, C)" : "";
    document.body.dataset.step = String(step.n);
  }

  // -- going places -----------------------------------------------------------------------------------------

  function say(text) { at("message").textContent = text; }
  function go(index, quiet) {
    if (!quiet) say("");
    here = Math.max(0, Math.min(steps.length - 1, index));
    draw();
    try { history.replaceState(null, "", "#step=" + steps[here].n); } catch { /* a frame may forbid it */ }
  }
  function find(direction, wanted, what) {
    for (let index = here + direction; index >= 0 && index < steps.length; index += direction) {
      if (wanted(index)) { go(index); return; }
    }
    say("no " + (direction > 0 ? "later" : "earlier") + " step " + what);
  }
  const broken = (direction) => find(direction, (index) => steps[index].fresh.length > 0, "breaks something new");
  function change(direction) {
    if (!follow) { say("click a slot, node or request first"); return; }
    find(direction, (index) => Object.values(steps[index].mark).some((marks) => follow in marks), "changes " + follow);
  }
  function search(direction) {
    if (!words) { say("no filter yet: / sets one"); return; }
    find(direction, (index) => [steps[index].action, ...steps[index].told].join("\n").toLowerCase().includes(words),
      "has these words");
  }
  function jump(number) {
    if (indexOf.has(number)) { go(indexOf.get(number)); return; }
    let nearest = 0;
    steps.forEach((step, index) => {
      if (Math.abs(step.n - number) < Math.abs(steps[nearest].n - number)) nearest = index;
    });
    go(nearest);
    say("step " + number + " is not on this page; this is the nearest one");
  }
  function linked() {
    const match = /^#step=(\d{1,12})$/.exec(location.hash);
    return match ? Number(match[1]) : null;
  }
  const moves = {
    ArrowRight: () => go(here + 1), l: () => go(here + 1), " ": () => go(here + 1), ArrowLeft: () => go(here - 1),
    h: () => go(here - 1), PageDown: () => go(here + 10), PageUp: () => go(here - 10), Home: () => go(0), g: () => go(0),
    End: () => go(steps.length - 1), G: () => go(steps.length - 1), v: () => broken(1), V: () => broken(-1),
    c: () => change(1), C: () => change(-1), n: () => search(1), N: () => search(-1), "/": () => at("words").focus(),
    "?": () => at("keys").showModal(),
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input[type=number], input[type=search]");
    if (event.key === "Escape" && typing) { event.target.blur(); return; }
    if (typing || event.ctrlKey || event.altKey || event.metaKey || at("keys").open) return;
    if (event.target.matches("button") && event.key === " ") return;
    if (Object.hasOwn(moves, event.key)) { event.preventDefault(); moves[event.key](); }
  });
  const buttons = { first: "Home", back: "ArrowLeft", next: "ArrowRight", last: "End", backBroken: "V", nextBroken: "v", help: "?" };
  for (const [id, key] of Object.entries(buttons)) at(id).addEventListener("click", moves[key]);
  at("slider").addEventListener("input", (event) => go(Number(event.target.value)));
  at("number").addEventListener("change", (event) => { if (event.target.value) jump(Number(event.target.value)); });
  at("words").addEventListener("input", (event) => { words = event.target.value.toLowerCase(); });
  at("words").addEventListener("keydown", (event) => { if (event.key === "Enter") search(1); });
  window.addEventListener("hashchange", () => { const number = linked(); if (number !== null) jump(number); });
  narrow.addEventListener("change", draw);

  at("title").textContent = data.title;
  at("about").textContent = [data.name, data.cache, data.engine, ...data.faults.map((fault) => "fault " + fault)]
    .filter(Boolean).join(" · ");
  at("notes").textContent = data.notes.join(". ");
  at("of").textContent = "of " + data.last;
  at("slider").max = String(steps.length - 1);
  at("foot").textContent = (data.command ? "reproduce: " + data.command + " · " : "") + "recorded by " + data.tool;
  for (const [keys, meaning] of KEYS) at("keys").querySelector("dl").append(make("dt", "", keys), make("dd", "", meaning));
  for (const index of violating.slice(0, 2000)) {
    const tick = make("i");
    tick.style.left = (steps.length > 1 ? 100 * index / (steps.length - 1) : 0) + "%";
    at("ticks").append(tick);
  }
  const number = linked();
  if (number === null) go(indexOf.get(data.start) || 0); else jump(number);
  document.body.dataset.ready = "yes";
})();
