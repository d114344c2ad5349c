'use strict';
// The timeline: one canvas, redrawn for the window of time that is looked at, so that its
// cost follows what can be seen and not how long the run was.
(() => {
  const canvas = document.getElementById('canvas'), axis = document.getElementById('axis');
  const tip = document.getElementById('tip'), windowText = document.getElementById('window');
  const filter = document.getElementById('filter'), legend = document.getElementById('legend');
  const label = 150, axisHeight = 26, faultRow = 16, nodeRow = 20, keyRow = 36, pad = 8;
  let from = 0, until = data.length, chosen = 0, hits = [], keys = data.keys.map((_, i) => i);

  // Yellow to cyan is brighter than the rest at one lightness, so it is drawn darker.
  const ownerColors = data.owners.map((_, i) => (212 + i * 137.5) % 360);
  const darker = hue => hue > 40 && hue < 195 ? 15 : 0;
  const kinds = [...new Set(data.faults.map(f => f.kind))];
  const kindHue = kind => (25 + kinds.indexOf(kind) * 47) % 360;
  const marks = [...data.marks].sort((a, b) => a.f - b.f);
  const lanes = layFaults();

  for (const kind of kinds) {
    const item = document.createElement('span'), swatch = document.createElement('i');
    swatch.className = 'swatch';
    swatch.style.background = `hsl(${kindHue(kind)} 70% 55% / .55)`;
    item.append(swatch, kind);
    legend.append(item);
  }
  if (data.nodes.length) {
    const item = document.createElement('span');
    item.textContent = '▲ started or continued   ■ stopped   ✕ killed or exited';
    legend.append(item);
  }

  // layFaults gives each fault the first row that is free for its time.
  function layFaults() {
    const ends = [];
    for (const f of [...data.faults].sort((a, b) => a.f - b.f)) {
      let row = ends.findIndex(end => end <= f.f);
      if (row < 0) row = ends.length;
      ends[row] = f.u;
      f.row = row;
    }
    return ends.length;
  }

  // What all keys begin with, up to a slash, tells none from another: labels leave it out.
  const shared = (() => {
    if (data.keys.length < 2) return 0;
    const first = data.keys[0].name;
    let n = 0;
    while (n < first.length && data.keys.every(k => k.name[n] === first[n])) n++;
    return first.lastIndexOf('/', n - 1) + 1;
  })();

  const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const width = () => canvas.clientWidth || canvas.parentElement.clientWidth;
  const x = t => label + (t - from) / (until - from) * (width() - label - 6);
  const timeAt = px => from + (px - label) / (width() - label - 6) * (until - from);
  const top = () => lanes * faultRow + (lanes ? pad : 0);
  const keysTop = () => top() + data.nodes.length * nodeRow + (data.nodes.length ? pad : 0);
  const height = () => keysTop() + keys.length * keyRow + 4;

  // first returns the index of the first bar that ends after t; bars are in order.
  function first(bars, t) {
    let low = 0, high = bars.length;
    while (low < high) { const mid = (low + high) >> 1; if (bars[mid].u < t) low = mid + 1; else high = mid; }
    return Math.max(0, low - 1);
  }

  function seconds(ms, digits) {
    const s = ms / 1000, m = Math.floor(s / 60);
    return m > 0 ? `${m}:${(s - 60 * m).toFixed(digits).padStart(digits ? digits + 3 : 2, '0')}` : s.toFixed(digits) + ' s';
  }

  function prepare(c, h) {
    const ratio = window.devicePixelRatio || 1, w = width();
    c.width = Math.round(w * ratio); c.height = Math.round(h * ratio); c.style.height = h + 'px';
    const g = c.getContext('2d');
    g.scale(ratio, ratio);
    g.clearRect(0, 0, w, h);
    g.textBaseline = 'middle';
    return g;
  }

  function ticks() {
    const rough = (until - from) / Math.max(2, (width() - label) / 110);
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1.5e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5];
    const step = steps.find(s => s >= rough) || 36e5 * Math.ceil(rough / 36e5);
    const all = [];
    for (let t = Math.ceil(from / step) * step; t <= until; t += step) all.push(t);
    return {all, digits: step >= 1000 ? 0 : step >= 100 ? 1 : step >= 10 ? 2 : 3};
  }

  function fit(g, text, most) {
    if (g.measureText(text).width <= most) return text;
    let chars = [...text];
    while (chars.length && g.measureText(chars.join('') + '…').width > most) chars = chars.slice(0, chars.length - Math.max(1, chars.length >> 3));
    return chars.join('') + '…';
  }

  function draw() {
    drawAxis();
    const g = prepare(canvas, height());
    hits = [];
    const ink = style('--ink'), quiet = style('--quiet'), line = style('--line'), h = height();
    g.strokeStyle = line; g.lineWidth = 1;
    for (const t of ticks().all) { const px = Math.round(x(t)) + .5; g.beginPath(); g.moveTo(px, 0); g.lineTo(px, h); g.stroke(); }
    g.save();
    g.beginPath(); g.rect(label, 0, width() - label, h); g.clip();
    drawFaults(g, h, ink);
    drawNodes(g);
    keys.forEach((key, row) => drawKey(g, data.keys[key], keysTop() + row * keyRow));
    drawMarks(g, h);
    g.restore();
    drawLabels(g, ink, quiet, line);
    windowText.textContent = `${seconds(from, 2)} to ${seconds(until, 2)}`;
  }

  function drawAxis() {
    const g = prepare(axis, axisHeight), {all, digits} = ticks();
    g.font = '12px system-ui, sans-serif'; g.fillStyle = style('--quiet'); g.textAlign = 'center';
    for (const t of all) if (x(t) >= label + 12) g.fillText(seconds(t, digits), Math.min(x(t), width() - 22), axisHeight / 2);
    g.fillStyle = style('--line'); g.fillRect(0, axisHeight - 1, width(), 1);
  }

  function drawFaults(g, h, ink) {
    g.font = '11px system-ui, sans-serif'; g.textAlign = 'left';
    for (const f of data.faults) {
      if (f.u < from || f.f > until) continue;
      const a = x(f.f), w = Math.max(1.5, x(f.u) - a), y = f.row * faultRow, hue = kindHue(f.kind);
      g.fillStyle = `hsl(${hue} 70% 55% / .09)`; g.fillRect(a, 0, w, h);
      g.fillStyle = `hsl(${hue} 70% 55% / .55)`; g.fillRect(a, y + 2, w, faultRow - 4);
      if (w > 34) { g.fillStyle = ink; g.fillText(fit(g, f.text, Math.min(w, width() - Math.max(a, label)) - 8), Math.max(a, label) + 4, y + faultRow / 2 + .5); }
      hits.push({a, b: a + w, y: y + 2, z: y + faultRow - 2, text: () => `${f.text}\n${seconds(f.f, 3)} to ${seconds(f.u, 3)}`});
    }
  }

  function drawNodes(g) {
    g.textAlign = 'center'; g.font = '12px system-ui, sans-serif';
    data.nodes.forEach((node, row) => {
      const y = top() + row * nodeRow + nodeRow / 2;
      g.strokeStyle = style('--line'); g.beginPath(); g.moveTo(label, y); g.lineTo(width(), y); g.stroke();
      for (const e of node.events) {
        if (e.at < from || e.at > until) continue;
        const up = e.what === 'started' || e.what === 'continued', stopped = e.what === 'stopped';
        g.fillStyle = style(up ? '--pass' : stopped ? '--unknown' : '--fail');
        g.fillText(up ? '▲' : stopped ? '■' : '✕', x(e.at), y + 1);
        hits.push({a: x(e.at) - 7, b: x(e.at) + 7, y: y - 8, z: y + 8, text: () => `${node.name} ${e.what} at ${seconds(e.at, 3)}${e.detail ? '\n' + e.detail : ''}`});
      }
    });
  }

  function drawKey(g, key, y) {
    drawBars(g, key.store, y + 22, 7, .45, 'by the store');
    drawBars(g, key.beliefs, y + 6, 15, 1, 'by its own belief');
  }

  // drawBars draws what is wider than a pixel as it is, and runs of less as one.
  function drawBars(g, bars, y, h, alpha, how) {
    const sat = style('--sat'), light = style('--light'), barInk = style('--barink');
    let drawn = -1;
    g.font = '11px system-ui, sans-serif'; g.textAlign = 'left';
    for (let i = first(bars, from); i < bars.length && bars[i].f <= until; i++) {
      const b = bars[i], a = x(b.f), end = Math.max(x(b.u), a + 1);
      if (end <= drawn) continue;
      const start = Math.max(a, drawn);
      g.fillStyle = `hsl(${ownerColors[b.o]} ${sat} calc(${light} - ${darker(ownerColors[b.o])}%) / ${alpha})`;
      const gap = end - start > 4 ? .75 : 0;
      g.fillRect(start, y, end - start - gap, h);
      const seen = Math.max(start, label);
      if (h > 12 && Math.min(end, width()) - seen > 30) {
        g.fillStyle = barInk;
        g.fillText(fit(g, `${data.owners[b.o]} · ${b.e}`, Math.min(end, width()) - seen - 8), seen + 4, y + h / 2 + .5);
      }
      if (end - a > 2) hits.push({a, b: end, y: y - 1, z: y + h + 1, text: () => `${data.owners[b.o]}, epoch ${b.e}, ${how}\n${seconds(b.f, 3)} to ${seconds(b.u, 3)} (${seconds(b.u - b.f, 3)})`});
      drawn = end;
    }
  }

  function drawMarks(g, h) {
    const fail = style('--fail');
    g.font = 'bold 10.5px system-ui, sans-serif'; g.textAlign = 'center';
    const seen = [];
    for (const m of marks) {
      if (m.u < from || m.f > until) continue;
      const row = keys.indexOf(m.key);
      if (m.key >= 0 && row < 0) continue;
      const y = m.key < 0 ? 0 : keysTop() + row * keyRow + 1, height = m.key < 0 ? h : keyRow - 3;
      const a = x(m.f), w = Math.max(3, x(m.u) - a), text = () => `#${m.n} ${m.text.slice(0, 600)}`;
      g.globalAlpha = m.n === chosen ? .42 : .16; g.fillStyle = fail; g.fillRect(a, y, w, height);
      g.globalAlpha = 1; g.strokeStyle = fail; g.lineWidth = m.n === chosen ? 2.5 : 1.25; g.strokeRect(a, y, w, height);
      if (m.key >= 0) hits.push({a, b: a + w, y: y + 12, z: y + height, low: true, mark: m.n, text});
      seen.push({m, a, y, text});
    }
    // Flags stand side by side, over all frames; what finds no place near its frame goes
    // without.
    const used = new Map();
    for (const {m, a, y, text} of seen) {
      const fw = 8 + 6 * String(m.n).length;
      const fx = Math.max(Math.min(Math.max(a, label), width() - fw), used.get(m.key) || 0);
      if (fx - a > 60 && a >= label) continue;
      used.set(m.key, fx + fw + 1);
      g.fillStyle = fail; g.fillRect(fx, y, fw, 12);
      g.fillStyle = '#fff'; g.fillText(String(m.n), fx + fw / 2, y + 6.5);
      hits.push({a: fx, b: fx + fw, y, z: y + 12, mark: m.n, text});
    }
    g.lineWidth = 1;
  }

  function drawLabels(g, ink, quiet, line) {
    g.font = '12.5px system-ui, sans-serif'; g.textAlign = 'left';
    if (lanes) { g.fillStyle = quiet; g.fillText('faults', 0, faultRow / 2 + 1); }
    g.fillStyle = quiet;
    data.nodes.forEach((node, row) => g.fillText(fit(g, node.name, label - 16), 0, top() + row * nodeRow + nodeRow / 2));
    keys.forEach((key, row) => {
      const y = keysTop() + row * keyRow, name = data.keys[key].name;
      g.fillStyle = line; g.fillRect(0, y, width(), 1);
      g.fillStyle = ink; g.fillText(fit(g, name.slice(shared), label - 16), 0, y + keyRow / 2);
      hits.push({a: 0, b: label - 8, y, z: y + keyRow, text: () => name});
    });
  }

  function look(a, b) {
    const span = Math.min(Math.max(b - a, 5), data.length);
    from = Math.min(Math.max(0, a), data.length - span);
    until = from + span;
    requestAnimationFrame(draw);
  }

  function zoom(factor, around) {
    const at = around === undefined ? (from + until) / 2 : around;
    look(at - (at - from) * factor, at + (until - at) * factor);
  }

  function show(number) {
    const m = data.marks.find(m => m.n === number);
    if (!m) return;
    chosen = number;
    filter.value = ''; keys = data.keys.map((_, i) => i);
    const margin = Math.max(500, (m.u - m.f) * 2);
    look(m.f - margin, m.u + margin);
    document.querySelectorAll('tr.chosen').forEach(r => r.classList.remove('chosen'));
    const row = document.getElementById('v' + number);
    if (row) row.classList.add('chosen');
    const y = m.key < 0 ? 0 : keysTop() + m.key * keyRow;
    window.scrollTo({top: canvas.getBoundingClientRect().top + window.scrollY + y - window.innerHeight / 2, behavior: 'smooth'});
  }

  function hitAt(px, py) {
    const here = h => px >= h.a && px <= h.b && py >= h.y && py <= h.z;
    return hits.findLast(h => here(h) && !h.low) || hits.findLast(here);
  }

  let grip = null;
  canvas.addEventListener('pointerdown', e => { grip = {x: e.clientX, from, until, moved: false}; canvas.setPointerCapture(e.pointerId); canvas.classList.add('moving'); });
  canvas.addEventListener('pointermove', e => {
    if (grip) {
      const d = (e.clientX - grip.x) / (width() - label - 6) * (grip.until - grip.from);
      grip.moved = grip.moved || Math.abs(e.clientX - grip.x) > 3;
      if (grip.moved) { tip.hidden = true; look(grip.from - d, grip.until - d); }
      return;
    }
    const hit = hitAt(e.offsetX, e.offsetY);
    tip.hidden = !hit;
    if (!hit) return;
    tip.textContent = hit.text();
    const left = Math.min(e.offsetX + 14, width() - tip.offsetWidth - 4);
    tip.style.left = Math.max(0, left) + 'px';
    tip.style.top = e.offsetY + axisHeight + 16 + 'px';
  });
  canvas.addEventListener('pointerup', e => {
    const clicked = grip && !grip.moved;
    grip = null; canvas.classList.remove('moving');
    const hit = clicked && hitAt(e.offsetX, e.offsetY);
    if (hit && hit.mark) location.hash = 'v' + hit.mark;
  });
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
  canvas.addEventListener('wheel', e => {
    if (e.ctrlKey || e.metaKey) { e.preventDefault(); zoom(Math.exp(e.deltaY / 300), timeAt(e.offsetX)); }
    else if (e.deltaX || e.shiftKey) { e.preventDefault(); const d = (e.deltaX || e.deltaY) / width() * (until - from); look(from + d, until + d); }
  }, {passive: false});

  let mark = null;
  axis.addEventListener('pointerdown', e => { mark = e.offsetX; axis.setPointerCapture(e.pointerId); });
  axis.addEventListener('pointermove', e => {
    if (mark === null) return;
    drawAxis();
    const g = axis.getContext('2d');
    g.fillStyle = style('--ink'); g.globalAlpha = .18; g.fillRect(Math.min(mark, e.offsetX), 0, Math.abs(e.offsetX - mark), axisHeight); g.globalAlpha = 1;
  });
  axis.addEventListener('pointerup', e => {
    if (mark !== null && Math.abs(e.offsetX - mark) > 4) look(timeAt(Math.min(mark, e.offsetX)), timeAt(Math.max(mark, e.offsetX)));
    mark = null;
  });

  document.getElementById('zoom-in').onclick = () => zoom(.5);
  document.getElementById('zoom-out').onclick = () => zoom(2);
  document.getElementById('zoom-all').onclick = () => look(0, data.length);
  filter.oninput = () => { keys = data.keys.map((_, i) => i).filter(i => data.keys[i].name.includes(filter.value)); draw(); };
  document.querySelectorAll('[data-show]').forEach(b => { b.onclick = () => show(Number(b.dataset.show)); });
  addEventListener('keydown', e => {
    if (e.target === filter) return;
    if (e.key === '+' || e.key === '=') zoom(.5);
    if (e.key === '-') zoom(2);
    if (e.key === '0') look(0, data.length);
  });
  addEventListener('resize', () => requestAnimationFrame(draw));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => requestAnimationFrame(draw));
  draw();
  const asked = /^#show-(\d+)$/.exec(location.hash);
  if (asked) show(Number(asked[1]));
})();
