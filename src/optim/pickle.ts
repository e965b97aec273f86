import { InputError } from '../errors.js';

/*
 * Python's pickles as plain data (https://docs.python.org/3/library/pickletools.html, protocols 2 to 5). A pickle is a
 * program for a stack machine that may name any Python function. This reader runs none: it knows the classes that hold
 * plain data, which it keeps as `PickleObject`s, and what its caller rebuilds; any other name is an error.
 */

/** A class or function that a pickle names. */
export class PickleGlobal {
  constructor(
    readonly module: string,
    readonly name: string,
  ) {}

  toString(): string {
    return `${this.module}.${this.name}`;
  }
}

/** An object of a class that holds plain data: what it was made from, and its attributes. */
export class PickleObject {
  /** By name. */
  attributes = new Map<unknown, unknown>();

  constructor(
    readonly type: PickleGlobal,
    readonly from: readonly unknown[],
  ) {}
}

export interface PickleOptions {
  /** For error messages. */
  readonly file: string;
  /** Where the pickle begins. Default 0. */
  readonly start?: number;
  /** What is kept outside the pickle under an id. Default: nothing may be. */
  readonly outside?: (id: unknown) => unknown;
  /** The result of calling a function known to the caller; undefined: unknown. */
  readonly call?: (what: PickleGlobal, values: readonly unknown[]) => unknown;
  /** Whether the caller knows a name besides those of plain data. Default: none. */
  readonly knows?: (what: PickleGlobal) => boolean;
}

/**
 * Reads one pickle. Dictionaries are Maps, lists, tuples and sets arrays, None is null, whole numbers beyond 2⁵³ are
 * bigints. `end` is the offset after it.
 */
export function readPickle(
  bytes: Uint8Array,
  options: PickleOptions,
): { readonly value: unknown; readonly end: number } {
  const machine = new Machine(bytes, options);
  return { value: machine.run(), end: machine.at };
}

/** Modules whose classes hold plain data, as far as checkpoints use them. */
const PLAIN = /^(argparse|omegaconf(\..+)?|fairseq(\..+)?|typing|pathlib|enum|numpy(\..+)?|_codecs|datetime)$/;

/** Python's own containers, by name. */
const CONTAINERS = new Set([
  'collections.OrderedDict',
  'collections.defaultdict',
  'collections.Counter',
  ...['builtins', '__builtin__'].flatMap((module) =>
    ['dict', 'list', 'tuple', 'set', 'frozenset', 'object', 'int', 'float', 'bool', 'str', 'bytes', 'complex'].map(
      (name) => `${module}.${name}`,
    ),
  ),
  'copyreg._reconstructor',
  'copy_reg._reconstructor',
]);

const MARK = Symbol('mark');

class Machine {
  at: number;
  private readonly stack: unknown[] = [];
  private readonly memo = new Map<number, unknown>();
  private readonly view: DataView;

  constructor(
    private readonly bytes: Uint8Array,
    private readonly options: PickleOptions,
  ) {
    this.at = options.start ?? 0;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  run(): unknown {
    for (;;) {
      const code = this.byte();
      if (code === STOP) return this.pop();
      const step = STEPS[code];
      if (step === undefined) {
        throw this.refused(`the operation 0x${code.toString(16).padStart(2, '0')} at byte ${this.at - 1} is not known`);
      }
      step(this);
    }
  }

  byte(): number {
    return this.take(1)[0];
  }

  take(count: number): Uint8Array {
    const end = this.at + count;
    if (!(end <= this.bytes.length)) throw this.refused('it is cut off');
    const taken = this.bytes.subarray(this.at, end);
    this.at = end;
    return taken;
  }

  /** An unsigned whole number of 1, 2, 4 or 8 bytes. */
  size(bytes: 1 | 2 | 4 | 8): number {
    const at = this.at;
    this.take(bytes);
    if (bytes === 1) return this.view.getUint8(at);
    if (bytes === 2) return this.view.getUint16(at, true);
    return bytes === 4 ? this.view.getUint32(at, true) : Number(this.view.getBigUint64(at, true));
  }

  int32(): number {
    this.take(4);
    return this.view.getInt32(this.at - 4, true);
  }

  float(): number {
    this.take(8);
    return this.view.getFloat64(this.at - 8);
  }

  /** Two's complement, the least byte first. */
  long(count: number): number | bigint {
    const bytes = this.take(count);
    let value = 0n;
    for (let i = count - 1; i >= 0; i--) value = value * 256n + BigInt(bytes[i]);
    if (count > 0 && bytes[count - 1] >= 128) value -= 1n << BigInt(8 * count);
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }

  text(count: number): string {
    return new TextDecoder().decode(this.take(count));
  }

  line(): string {
    const end = this.bytes.indexOf(0x0a, this.at);
    if (end < 0) throw this.refused('it is cut off');
    const text = this.text(end - this.at);
    this.at++;
    return text;
  }

  push(value: unknown): void {
    this.stack.push(value);
  }

  pop(): unknown {
    if (this.stack.length === 0 || this.stack.at(-1) === MARK) throw this.refused('its stack is empty');
    return this.stack.pop();
  }

  mark(): void {
    this.stack.push(MARK);
  }

  /** What was pushed since the last mark. */
  popMarked(): unknown[] {
    const at = this.stack.lastIndexOf(MARK);
    if (at < 0) throw this.refused('it has no mark where one is needed');
    const values = this.stack.splice(at);
    return values.slice(1);
  }

  remember(key: number = this.memo.size): void {
    this.memo.set(key, this.stack.at(-1));
  }

  recall(key: number): void {
    if (!this.memo.has(key)) throw this.refused(`it refers to the value ${key}, which it does not have`);
    this.push(this.memo.get(key));
  }

  append(values: readonly unknown[]): void {
    const list = this.stack.at(-1);
    if (!Array.isArray(list)) throw this.refused('it appends to what is not a list');
    for (const value of values) list.push(value);
  }

  set(values: readonly unknown[]): void {
    const map = this.stack.at(-1);
    if (!(map instanceof Map) || values.length % 2 !== 0) throw this.refused('it sets an item of what is not a dict');
    for (let i = 0; i < values.length; i += 2) map.set(values[i], values[i + 1]);
  }

  global(module: string, name: string): void {
    const what = new PickleGlobal(module, name);
    if (!PLAIN.test(module) && !CONTAINERS.has(String(what)) && !this.options.knows?.(what)) {
      throw this.refused(`it names ${what}, which is neither plain data nor a tensor`);
    }
    this.push(what);
  }

  /** The result of calling what a pickle names: nothing is run. */
  reduce(): void {
    const values = this.pop();
    const what = this.pop();
    if (!(what instanceof PickleGlobal) || !Array.isArray(values))
      throw this.refused('it calls what is not a function');
    this.push(this.made(what, values));
  }

  /** Attributes for what is on the stack. */
  build(): void {
    const state = this.pop();
    const object = this.stack.at(-1);
    if (!(object instanceof PickleObject)) return; // the attributes of a dict, such as the versions in a state dict
    for (const part of Array.isArray(state) ? state : [state]) {
      if (part instanceof Map) for (const [key, value] of part) object.attributes.set(key, value);
    }
  }

  outside(id: unknown): void {
    if (this.options.outside === undefined) throw this.refused('it refers to something outside');
    this.push(this.options.outside(id));
  }

  refused(why: string): InputError {
    return new InputError(`not a pickle of tensors and plain data: ${why}`, { file: this.options.file });
  }

  private made(what: PickleGlobal, values: readonly unknown[]): unknown {
    const own = this.options.call?.(what, values);
    if (own !== undefined) return own;
    const [first] = values;
    switch (`${what}`.replace('__builtin__', 'builtins').replace('copy_reg', 'copyreg')) {
      case 'collections.OrderedDict':
      case 'builtins.dict':
      case 'collections.Counter':
        return pairsOf(first);
      case 'collections.defaultdict':
        return new Map();
      case 'builtins.list':
      case 'builtins.tuple':
      case 'builtins.set':
      case 'builtins.frozenset':
        return Array.isArray(first) ? [...first] : [];
      case 'copyreg._reconstructor':
        return new PickleObject(first instanceof PickleGlobal ? first : what, values.slice(1));
      default:
        if (PLAIN.test(what.module)) return new PickleObject(what, values);
        throw this.refused(`it calls ${what}`);
    }
  }
}

function pairsOf(value: unknown): Map<unknown, unknown> {
  if (value instanceof Map) return new Map(value);
  return new Map(
    Array.isArray(value) ? value.filter((pair) => Array.isArray(pair)).map(([key, item]) => [key, item]) : [],
  );
}

const STOP = 0x2e;

/** The operations, by their codes. */
const STEPS: Readonly<Record<number, (m: Machine) => void>> = {
  128: (m) => m.take(1), // PROTO
  149: (m) => m.take(8), // FRAME
  40: (m) => m.mark(), // MARK
  48: (m) => m.pop(), // POP
  49: (m) => m.popMarked(), // POP_MARK
  78: (m) => m.push(null), // NONE
  136: (m) => m.push(true), // NEWTRUE
  137: (m) => m.push(false), // NEWFALSE
  74: (m) => m.push(m.int32()), // BININT
  75: (m) => m.push(m.size(1)), // BININT1
  77: (m) => m.push(m.size(2)), // BININT2
  138: (m) => m.push(m.long(m.size(1))), // LONG1
  139: (m) => m.push(m.long(m.size(4))), // LONG4
  71: (m) => m.push(m.float()), // BINFLOAT
  88: (m) => m.push(m.text(m.size(4))), // BINUNICODE
  140: (m) => m.push(m.text(m.size(1))), // SHORT_BINUNICODE
  141: (m) => m.push(m.text(m.size(8))), // BINUNICODE8
  84: (m) => m.push(m.text(m.size(4))), // BINSTRING
  85: (m) => m.push(m.text(m.size(1))), // SHORT_BINSTRING
  66: (m) => m.push(m.take(m.size(4))), // BINBYTES
  67: (m) => m.push(m.take(m.size(1))), // SHORT_BINBYTES
  142: (m) => m.push(m.take(m.size(8))), // BINBYTES8
  125: (m) => m.push(new Map()), // EMPTY_DICT
  100: (m) => {
    const items = m.popMarked(); // DICT
    m.push(new Map());
    m.set(items);
  },
  93: (m) => m.push([]), // EMPTY_LIST
  108: (m) => m.push(m.popMarked()), // LIST
  143: (m) => m.push([]), // EMPTY_SET
  144: (m) => m.append(m.popMarked()), // ADDITEMS
  145: (m) => m.push(m.popMarked()), // FROZENSET
  41: (m) => m.push([]), // EMPTY_TUPLE
  116: (m) => m.push(m.popMarked()), // TUPLE
  133: (m) => m.push([m.pop()]), // TUPLE1
  134: (m) => {
    const last = m.pop(); // TUPLE2
    m.push([m.pop(), last]);
  },
  135: (m) => {
    const [last, middle] = [m.pop(), m.pop()]; // TUPLE3
    m.push([m.pop(), middle, last]);
  },
  97: (m) => m.append([m.pop()]), // APPEND
  101: (m) => m.append(m.popMarked()), // APPENDS
  115: (m) => {
    const value = m.pop(); // SETITEM
    m.set([m.pop(), value]);
  },
  117: (m) => m.set(m.popMarked()), // SETITEMS
  113: (m) => m.remember(m.size(1)), // BINPUT
  114: (m) => m.remember(m.size(4)), // LONG_BINPUT
  148: (m) => m.remember(), // MEMOIZE
  104: (m) => m.recall(m.size(1)), // BINGET
  106: (m) => m.recall(m.size(4)), // LONG_BINGET
  99: (m) => m.global(m.line(), m.line()), // GLOBAL
  147: (m) => {
    const name = m.pop(); // STACK_GLOBAL
    m.global(String(m.pop()), String(name));
  },
  82: (m) => m.reduce(), // REDUCE
  129: (m) => m.reduce(), // NEWOBJ
  98: (m) => m.build(), // BUILD
  81: (m) => m.outside(m.pop()), // BINPERSID
};
