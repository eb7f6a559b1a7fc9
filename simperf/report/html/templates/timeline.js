"use strict";
// The timeline: rows of bars on a canvas, with zoom by buttons, wheel with Ctrl, pinch, drag and keys.
for (const box of document.querySelectorAll(".timeline")) {
  const data = JSON.parse(box.querySelector("script").textContent);
  for (const row of data.rows) {
    if (!row.packed) continue;
    let at = 0; row.spans = [];
    for (let i = 0; i < row.packed.length; i += 5) {
      const [begun, length, kind, name, share] = row.packed.slice(i, i + 5);
      at += begun; row.spans.push(at * data.unit, length * data.unit, kind, name, share / data.shares);
    }
  }
  const canvas = box.querySelector("canvas"), tip = box.querySelector(".tip"), pen = canvas.getContext("2d");
  const status = document.getElementById(box.dataset.status);
  const ROW = 22, AXIS = 26, total = data.time || 1;
  const label = () => Math.min(170, Math.max(116, canvas.clientWidth * 0.22));
  const small = () => canvas.clientWidth < 600;
  let from = 0, to = total;
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  function text(seconds) {
    if (seconds === 0) return "0 s";
    for (const [factor, unit] of [[3600, "h"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]) {
      if (Math.abs(seconds) >= factor || unit === "ns") return `${+(seconds / factor).toPrecision(4)} ${unit}`;
    }
    return "0 s";
  }
  function draw() {
    const width = canvas.clientWidth, height = data.rows.length * ROW + AXIS, dense = window.devicePixelRatio || 1;
    canvas.width = width * dense; canvas.height = height * dense; canvas.style.height = `${height}px`;
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    const ink = css("--ink"), faint = css("--faint"), rule = css("--rule"), paper = css("--paper"), left = label();
    const x = t => left + (t - from) / (to - from) * (width - left);
    pen.clearRect(0, 0, width, height);
    pen.font = `${small() ? 11 : 12}px system-ui, sans-serif`; pen.textBaseline = "middle";
    const step = (to - from) / Math.max(3, Math.floor((width - left) / 90));
    const power = 10 ** Math.floor(Math.log10(step)), tick = power * [1, 2, 5, 10].find(m => m * power >= step);
    pen.fillStyle = faint; pen.strokeStyle = rule; pen.textAlign = "center";
    for (let k = Math.ceil(from / tick); k * tick <= to * (1 + 1e-12); k++) {
      const at = x(k * tick), word = text(k * tick), half = pen.measureText(word).width / 2;
      pen.beginPath(); pen.moveTo(at, 0); pen.lineTo(at, height - AXIS + 4); pen.stroke();
      if (at - half >= left - 8 && at + half <= width) pen.fillText(word, at, height - AXIS / 2);
    }
    data.rows.forEach((row, r) => {
      const top = r * ROW + 3, high = ROW - 6;
      pen.save(); pen.beginPath(); pen.rect(left, r * ROW, width - left, ROW); pen.clip();
      if (row.steps) counter(row, r, x, left, width);
      let next = -1;
      for (let i = 0; i < (row.spans || []).length; i += 5) {
        const start = row.spans[i], end = start + row.spans[i + 1];
        if (end < from || start > to) continue;
        const a = x(start), b = Math.max(x(end), a + 0.7), kind = data.kinds[row.spans[i + 2]];
        if (b - a < 1 && Math.floor(a) === next) continue; // this pixel shows one already
        next = b - a < 1 ? Math.floor(a) : -1;
        const h = Math.max(1, high * row.spans[i + 4]); // of many short ones drawn as one: the share that they fill
        pen.fillStyle = kind.color;
        if (kind.hatch) {
          pen.strokeStyle = faint; pen.lineWidth = 1; pen.strokeRect(a + .5, top + .5, Math.max(0, b - a - 1), high - 1);
          pen.save(); pen.beginPath(); pen.rect(a, top, b - a, high); pen.clip(); pen.beginPath();
          for (let s = Math.max(a, left) - high; s < Math.min(b, width); s += 5) { pen.moveTo(s, top + high); pen.lineTo(s + high, top); }
          pen.stroke(); pen.restore();
        } else {
          pen.fillRect(a, top + high - h, b - a, h);
          if (b - a > 4) { pen.strokeStyle = paper; pen.lineWidth = 0.7; pen.strokeRect(a, top, b - a, high); }
        }
        const name = data.names[row.spans[i + 3]];
        const room = Math.min(b, width) - Math.max(a, left);
        if (room > 30 && pen.measureText(name).width < room - 6) {
          if (kind.hatch) { const w = pen.measureText(name).width; pen.fillStyle = paper;
            pen.fillRect((Math.max(a, left) + Math.min(b, width) - w) / 2 - 2, top + 1, w + 4, high - 2); }
          pen.fillStyle = kind.hatch ? ink : kind.dark ? "#ffffff" : "#000000"; pen.textAlign = "center";
          pen.fillText(name, (Math.max(a, left) + Math.min(b, width)) / 2, top + high / 2);
        }
      }
      pen.restore();
      pen.fillStyle = ink; pen.textAlign = "left";
      let shown = row.label; // too long a name loses its middle: both ends tell rows apart
      for (let cut = 1; pen.measureText(shown).width > left - 8 && cut < row.label.length - 3; cut++) {
        const kept = row.label.length - cut, head = Math.ceil(kept / 2);
        shown = `${row.label.slice(0, head)}…${row.label.slice(row.label.length - (kept - head))}`;
      }
      pen.fillText(shown, 4, r * ROW + ROW / 2);
    });
    box.dataset.from = from; box.dataset.to = to;
    if (status) {
      const shown = [text(from), text(to), text(total)];
      status.textContent = box.dataset.shown.replace(/\{\}/g, () => shown.shift());
    };
  }
  // a counter: its lowest value as a filled area, what lies between that and its highest one lighter
  function counter(row, r, x, left, width) {
    const base = (r + 1) * ROW - 3, high = ROW - 6, steps = row.steps;
    for (const [offset, alpha] of [[2, 0.45], [1, 1]]) {
      pen.globalAlpha = alpha; pen.fillStyle = "#777777"; pen.beginPath(); pen.moveTo(left, base);
      let pixel = -1, most = 0;
      for (let i = place_of(steps, from); i < steps.length && steps[i] <= to; i += 3) {
        const a = Math.max(left, x(steps[i])), b = Math.min(width, i + 3 < steps.length ? x(steps[i + 3]) : width);
        const value = steps[i + offset] / row.top * high, at = Math.floor(a);
        most = at === pixel ? Math.max(most, value) : value; // within a pixel the highest value shows
        pixel = at;
        pen.lineTo(a, base - most); pen.lineTo(Math.max(b, a), base - most);
      }
      pen.lineTo(width, base); pen.closePath(); pen.fill();
    }
    pen.globalAlpha = 1; pen.strokeStyle = "#777777"; pen.lineWidth = 0.6;
    pen.beginPath(); pen.moveTo(left, base); pen.lineTo(width, base); pen.stroke();
  }
  function place_of(steps, at) { // of the last step that begins before
    let low = 0, high = steps.length / 3 - 1;
    while (low < high) { const middle = (low + high + 1) >> 1; if (steps[3 * middle] <= at) low = middle; else high = middle - 1; }
    return 3 * low;
  }
  function amount(value, unit) {
    if (unit === "1") return `${+value.toPrecision(6)}`;
    for (const [factor, head] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (value >= factor) return `${+(value / factor).toPrecision(4)} ${head}${unit}`;
    }
    return `${+value.toPrecision(4)} ${unit}`;
  }
  function zoom(factor, centre = (from + to) / 2) {
    const width = Math.min(total, Math.max(total * 1e-7, (to - from) * factor));
    from = Math.min(Math.max(0, centre - (centre - from) / (to - from) * width), total - width);
    to = from + width; draw();
  }
  function pan(share) {
    const width = to - from;
    from = Math.min(Math.max(0, from + share * width), total - width); to = from + width; draw();
  }
  const reset = () => { from = 0; to = total; draw(); };
  const actions = { in: () => zoom(0.5), out: () => zoom(2), left: () => pan(-0.25), right: () => pan(0.25), all: reset };
  const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", "0": "all" };
  for (const button of document.querySelectorAll(`[data-timeline="${box.id}"]`)) {
    button.addEventListener("click", () => actions[button.dataset.action]());
  }
  canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || !(event.key in keys)) return;
    event.preventDefault(); actions[keys[event.key]]();
  });
  const place = event => from + (event.offsetX - label()) / (canvas.clientWidth - label()) * (to - from);
  canvas.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey) return; // plain wheel scrolls the page
    event.preventDefault(); zoom(event.deltaY > 0 ? 1.25 : 0.8, place(event));
  }, { passive: false });
  const held = new Map();
  canvas.addEventListener("pointerdown", event => { held.set(event.pointerId, event.offsetX); canvas.setPointerCapture(event.pointerId); });
  for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, event => held.delete(event.pointerId));
  canvas.addEventListener("pointermove", event => {
    if (held.has(event.pointerId)) {
      const room = canvas.clientWidth - label(), before = held.get(event.pointerId);
      if (held.size === 2) {
        const other = [...held].find(([id]) => id !== event.pointerId)[1];
        const was = Math.abs(before - other), is = Math.abs(event.offsetX - other);
        if (was > 4 && is > 4) zoom(was / is, from + ((event.offsetX + other) / 2 - label()) / room * (to - from));
      } else pan((before - event.offsetX) / room);
      held.set(event.pointerId, event.offsetX);
    }
    hover(event);
  });
  canvas.addEventListener("pointerleave", () => { tip.style.display = "none"; });
  function hover(event) {
    const row = data.rows[Math.floor(event.offsetY / ROW)], at = place(event);
    tip.style.display = "none";
    if (!row || event.offsetX < label()) return;
    if (row.steps) {
      const i = place_of(row.steps, at), low = row.steps[i + 1], high = row.steps[i + 2];
      show(event, `${row.label}: ${low < high ? `${amount(low, row.unit)} to ` : ""}${amount(high, row.unit)} at ${text(at)}`
        + ` (highest ${amount(row.top, row.unit)})`);
      return;
    }
    const slack = (to - from) / canvas.clientWidth;
    for (let i = row.spans.length - 5; i >= 0; i -= 5) {
      const start = row.spans[i], length = row.spans[i + 1];
      if (start - slack <= at && at <= start + length + slack) {
        const kind = data.kinds[row.spans[i + 2]], share = row.spans[i + 4];
        show(event, `${data.names[row.spans[i + 3]]}: ${kind.name}, ${text(length)} from ${text(start)}`
          + (share < 1 ? `, ${(share * 100).toPrecision(3)} % of it busy` : ""));
        return;
      }
    }
  }
  function show(event, words) {
    tip.textContent = words; tip.style.display = "block";
    tip.style.left = `${Math.max(0, Math.min(event.offsetX + 12, canvas.clientWidth - 200))}px`;
    tip.style.top = `${event.offsetY + 14}px`;
  }
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}
