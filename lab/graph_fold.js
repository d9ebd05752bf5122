'use strict';
// Turns the page's data, which fold.h describes, into one list of nodes, and folds these into boxes.

const data = JSON.parse(document.getElementById('data').textContent);
const nodes = data.boxes.flatMap(b => b.nodes.map(n => ({...n, phase: b.phase}))).sort((a, b) => a.id - b.id);
const sources = new Map(data.sources.map(s => [s.output, s]));
const values = new Map();  // value → its type and the node that makes it; sources are not among them
for (const n of nodes) n.outputs.forEach((v, i) => values.set(v, {producer: n, type: n.types[i]}));

const kBytes = {f64: 8, f32: 4, i32: 4, bf16: 2, bool: 1};
const elementsOf = type => type.slice(type.indexOf('[') + 1, -1).split(',').reduce((p, x) => x ? p * x : p, 1);
const bytesOf = type => elementsOf(type) * kBytes[type.slice(0, type.indexOf('['))];

// The level of a fold: a number of scope levels, or BY_OP: all levels and the op, or ALONE: a box for each node.
const BY_OP = 1e5, ALONE = 1e6;
const deepest = Math.max(1, ...nodes.map(n => n.scope.split('/').length));
const prefix = (scope, level) => scope.split('/').slice(0, level).join('/');

// Returns a node's key at a level. Nodes with one key form one box, or several parts of one.
function keyOf(n, level) {
  if (n.phase === 'input' || level === ALONE) return `node\t${n.id}`;
  return [n.phase, level, prefix(n.scope, level), level === BY_OP ? n.op : ''].join('\t');
}

function titleOfKey(key) {
  const [, , scope, op] = key.split('\t');
  return op || scope || '(no scope)';
}

// Reports whether a path leads from box `start` to one of `targets`.
function isReached(start, targets) {
  const open = [start], seen = new Set(open);
  while (open.length) {
    const at = open.pop();
    if (targets.has(at)) return true;
    for (const next of at.readers) {
      if (!seen.has(next)) { seen.add(next); open.push(next); }
    }
  }
  return false;
}

// Divides nodes into boxes as FoldByScope does: a node that would close a cycle begins a new part of its box. `opened`
// maps the keys of unfolded boxes to the level that they are unfolded to.
function divide(level, opened) {
  const boxes = [], newest = new Map(), boxOf = new Map();
  for (const n of nodes) {
    const frames = [];
    let at = level, key = keyOf(n, at);
    for (; opened.has(key); key = keyOf(n, at)) { frames.push(key); at = opened.get(key); }
    const last = newest.get(key);
    const writers = new Set(n.inputs.map(v => boxOf.get(values.get(v)?.producer)));
    writers.delete(undefined);
    writers.delete(last);
    let box = last;
    if (!last || (writers.size && last.readers.size && isReached(last, writers))) {
      const alone = n.phase === 'input' || at === ALONE;
      box = {id: boxes.length, key, level: at, frames, phase: n.phase, alone, part: last ? last.part + 1 : 0, nodes: [],
             all: last ? last.all : [],  // all nodes of this key, in whichever part
             readers: new Set(), writers: new Set()};
      if (last && n.inputs.some(v => boxOf.get(values.get(v)?.producer) === last)) writers.add(last);
      newest.set(key, box);
      boxes.push(box);
    }
    boxOf.set(n, box);
    box.nodes.push(n);
    box.all.push(n);
    for (const w of writers) { w.readers.add(box); box.writers.add(w); }
  }
  return {boxes, boxOf};
}

function fold(level, opened) {
  const {boxes, boxOf} = divide(level, opened);
  const edges = new Map();
  for (const box of boxes) {
    Object.assign(box, {title: titleOfKey(box.key), flops: 0, parameters: []});
    if (box.phase === 'input') box.title = box.nodes[0].attrs;
    else if (box.alone) box.title = box.nodes[0].op;
    if (box.part) box.title += ` (${box.part + 1})`;
    const read = new Set(box.nodes.flatMap(n => n.inputs));
    for (const n of box.nodes) box.flops += n.flops;
    for (const v of read) {
      if (sources.get(v)?.op === 'parameter') box.parameters.push(sources.get(v));
      const from = boxOf.get(values.get(v)?.producer);
      if (!from || from === box) continue;
      const name = `${from.id} ${box.id}`;
      if (!edges.has(name)) edges.set(name, {from, to: box, values: 0, bytes: 0});
      edges.get(name).values++;
      edges.get(name).bytes += bytesOf(values.get(v).type);
    }
  }
  return {boxes, edges: [...edges.values()]};
}

// Returns the next level at which a box divides: first by deeper scopes, then by op if one scope has many nodes, then
// into single nodes. Returns undefined for a single node.
function nextLevel(box) {
  const all = box.all;
  if (all.length < 2) return undefined;
  for (let level = box.level + 1; level <= deepest; ++level) {
    if (new Set(all.map(n => prefix(n.scope, level))).size > 1) return level;
  }
  const ops = new Set(all.map(n => n.op)).size;
  return all.length > 60 && ops > 1 && box.level < BY_OP ? BY_OP : ALONE;
}
