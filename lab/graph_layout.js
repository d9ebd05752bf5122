// Computes the positions of boxes. Each phase has a lane; a lane's rows are layers by longest path. The backward lane
// runs upwards, so that a block's gradients are beside the block.

const LANES = ['input', 'forward', 'backward', 'update'];
const TOP = 44, ROW_GAP = 26, SIDE = 16, LANE_GAP = 110, COLUMN_GAP = 48, MAX_IN_LINE = 6;
const lowest = list => Math.min(...list), highest = list => Math.max(...list);

// Returns an order in which each box follows those that it reads.
function ordered(boxes) {
  const waits = new Map(boxes.map(b => [b, b.writers.size]));
  const order = boxes.filter(b => !b.writers.size);
  for (let i = 0; i < order.length; ++i) {
    for (const r of order[i].readers) {
      waits.set(r, waits.get(r) - 1);
      if (!waits.get(r)) order.push(r);
    }
  }
  return order;
}

function setRows(order) {
  const lane = name => order.filter(b => b.lane === name);
  const before = b => [...b.writers].filter(o => o.lane === b.lane);
  const after = b => [...b.readers].filter(o => o.lane === b.lane);
  for (const name of LANES.slice(1)) {
    const boxes = lane(name);
    for (const b of boxes) b.row = Math.max(0, ...before(b).map(o => o.row + 1));
    for (const b of [...boxes].reverse()) {  // moves each box as close as possible to its readers
      const rows = after(b).map(o => o.row - 1);
      if (rows.length) b.row = Math.max(b.row, lowest(rows));
    }
    const bottom = Math.max(...boxes.map(b => b.row));
    if (name === 'backward') for (const b of boxes) b.row = bottom - b.row;
  }
  for (const [name, other] of [['backward', 'forward'], ['forward', 'backward'], ['backward', 'forward']]) {
    const rows = new Map();  // the rows of the other lane by scope; boxes move down to be beside their scope's row
    for (const b of lane(other)) {
      for (const n of b.nodes) rows.set(n.scope, Math.min(b.row, rows.get(n.scope) ?? b.row));
    }
    const upwards = name === 'backward';
    for (const b of upwards ? lane(name).reverse() : lane(name)) {
      const beside = b.nodes.filter(n => rows.has(n.scope)).map(n => rows.get(n.scope));
      if (beside.length) b.row = Math.max(b.row, lowest(beside));
      for (const o of upwards ? after(b) : before(b)) b.row = Math.max(b.row, o.row + 1);
    }
  }
  for (const b of lane('input')) {  // beside the first reader, or above it if the reader is in the last lane
    const rank = r => LANES.indexOf(r.lane) * 1e6 + r.row;
    const reader = [...b.readers].sort((p, q) => rank(p) - rank(q))[0];
    if (!reader) continue;
    const last = reader.lane === 'update';
    b.row = last ? -1 : reader.row;
    if (last) b.lane = 'update';
  }
}

// A frame surrounds the boxes of an unfolded box. If its rows overlap those of other boxes, it gets a column of its own.
function setColumns(order) {
  const frames = new Map();
  for (const b of order) {
    b.frames.forEach((key, depth) => {
      if (!frames.has(key)) frames.set(key, {key, depth, lane: b.lane, phase: b.phase, boxes: []});
      frames.get(key).boxes.push(b);
    });
  }
  for (const f of frames.values()) {
    f.top = lowest(f.boxes.map(b => b.row));
    f.bottom = highest(f.boxes.map(b => b.row));
  }
  for (const lane of LANES) {
    const columns = [order.filter(b => b.lane === lane && !b.frames.length).map(b => ({top: b.row, bottom: b.row}))];
    for (const f of frames.values()) {
      if (f.depth > 0 || f.lane !== lane) continue;
      const free = columns.findIndex(taken => !taken.some(t => t.top <= f.bottom && f.top <= t.bottom));
      const column = free < 0 ? columns.push([]) - 1 : free;
      columns[column].push(f);
      for (const b of f.boxes) b.column = column;
    }
  }
  return frames;
}

// Sets vertical positions, and breaks a row's boxes in one column into lines. Returns the lines by lane and column, and
// the height.
function setHeights(boxes, frames) {
  const lines = new Map();
  let y = TOP;
  for (const row of [...new Set(boxes.map(b => b.row))].sort((a, b) => a - b)) {
    const inRow = boxes.filter(b => b.row === row);
    const count = edge => highest(inRow.map(b => b.frames.filter(key => frames.get(key)[edge] === row).length));
    y += 22 * count('top');
    let bottom = y;
    for (const cell of new Set(inRow.map(b => `${b.lane}\t${b.column}`))) {
      const position = b => {  // the mean position of the boxes that it reads
        const known = [...b.writers].filter(w => w.position !== undefined);
        return known.reduce((sum, w) => sum + w.position, 0) / (known.length || 1);
      };
      const sorted = inRow.filter(b => `${b.lane}\t${b.column}` === cell).map(b => [position(b), b])
        .sort((p, q) => p[0] - q[0] || p[1].id - q[1].id).map(p => p[1]);
      const size = Math.ceil(sorted.length / Math.ceil(sorted.length / MAX_IN_LINE));
      let top = y;
      for (let i = 0; i < sorted.length; i += size) {
        const line = sorted.slice(i, i + size);
        line.forEach((b, j) => { b.y = top; b.position = j - (line.length - 1) / 2; });
        if (!lines.has(cell)) lines.set(cell, []);
        lines.get(cell).push(line);
        bottom = Math.max(bottom, top + highest(line.map(b => b.h)));
        top = bottom + 12;
      }
    }
    y = bottom + ROW_GAP + 10 * count('bottom');
  }
  return {lines, height: y};
}

function layout(boxes) {
  const order = ordered(boxes);
  for (const b of order) {
    b.lane = b.phase === 'recorded' ? 'forward' : b.phase;
    Object.assign(b, b.alone ? {w: 150, h: 38} : {w: 172, h: 48}, {row: 0, column: 0});
  }
  setRows(order);
  const frames = setColumns(order), lanes = [];
  const main = order.filter(b => b.lane !== 'update'), last = order.filter(b => b.lane === 'update');
  const [mainHeight, lastHeight] = [setHeights(main, frames), setHeights(last, frames)];
  const shift = Math.max(0, (mainHeight.height - lastHeight.height) / 2);
  for (const b of last) b.y += shift;
  const lines = new Map([...mainHeight.lines, ...lastHeight.lines]);
  let x = 24;
  for (const lane of LANES) {  // sets horizontal positions: lines are centred in their column
    const begin = x;
    const columns = [...lines.keys()].filter(cell => cell.startsWith(`${lane}\t`)).sort();
    for (const cell of columns) {
      const width = line => line.reduce((sum, b) => sum + b.w + SIDE, -SIDE);
      const pad = 12 * highest(lines.get(cell).flat().map(b => b.frames.length));
      const widest = highest(lines.get(cell).map(width)) + 2 * pad;
      for (const line of lines.get(cell)) {
        let at = x + (widest - width(line)) / 2;
        for (const b of line) { b.x = at; at += b.w + SIDE; }
      }
      x += widest + COLUMN_GAP;
    }
    if (!columns.length) continue;
    x -= COLUMN_GAP;
    lanes.push({name: lane, middle: (begin + x) / 2});
    x += LANE_GAP;
  }
  for (const f of [...frames.values()].sort((p, q) => q.depth - p.depth)) {  // inner frames first
    const inside = [...f.boxes, ...[...frames.values()].filter(g => g.depth > f.depth && f.boxes.includes(g.boxes[0]))];
    f.x = lowest(inside.map(b => b.x)) - 10;
    f.y = lowest(inside.map(b => b.y)) - 21;
    f.w = highest(inside.map(b => b.x + b.w)) + 10 - f.x;
    f.h = highest(inside.map(b => b.y + b.h)) + 9 - f.y;
  }
  const height = Math.max(mainHeight.height, lastHeight.height);
  return {order, lanes, frames: [...frames.values()], width: x - LANE_GAP + 24, height};
}

// Returns the path of an edge: from side to side between columns, straight to the next row of a column, and in a bow
// past several rows.
function curve({from: a, to: b}) {
  const ax = a.x + a.w / 2, bx = b.x + b.w / 2, ay = a.y + a.h / 2, by = b.y + b.h / 2;
  const bezier = (x0, y0, x1, y1, x2, y2, x3, y3) => `M${x0},${y0}C${x1},${y1} ${x2},${y2} ${x3},${y3}`;
  if (a.lane !== b.lane || a.column !== b.column) {
    const right = bx > ax, x0 = right ? a.x + a.w : a.x, x1 = right ? b.x - 3 : b.x + b.w + 3, middle = (x0 + x1) / 2;
    return bezier(x0, ay, middle, ay, middle, by, x1, by);
  }
  if (Math.abs(a.row - b.row) > 1) {
    const side = a.lane === 'forward' ? -1 : 1, bow = side * Math.min(90, 26 + 5 * Math.abs(a.row - b.row));
    const x0 = side < 0 ? a.x : a.x + a.w, x1 = side < 0 ? b.x - 3 : b.x + b.w + 3;
    return bezier(x0, ay, x0 + bow, ay, x1 + bow, by, x1, by);
  }
  const up = by < ay, y0 = up ? a.y : a.y + a.h, y1 = up ? b.y + b.h + 3 : b.y - 3, middle = (y0 + y1) / 2;
  return bezier(ax, y0, ax, middle, bx, middle, bx, y1);
}
