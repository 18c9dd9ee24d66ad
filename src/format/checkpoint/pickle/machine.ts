/**
 * An inert machine for pickles: a global is a name, a call is a note of its callable and arguments, and BUILD
 * hangs a state on a note. Nothing is looked up, imported or run, so a hostile pickle is data like any other.
 *
 * What it makes is a tape (`Pickle`): nodes in columns of numbers, not an object a value, because the metadata of a
 * distributed checkpoint has millions of values. A *handle* stands for a value: from 0 on a node, below 0 a small integer.
 */

import { FormatError } from '../../../base/errors.js'
import { turnsWhenDue } from '../../../base/turns.js'
import { OP, REFUSED } from './opcodes.js'
import { type Handle, integer, KIND, NONE, Pickle, SINGLES } from './tape.js'

const MAX_OPCODES = 50_000_000
/** Opcodes between two looks at the clock. */
const OPCODES_AT_ONCE = 8192
const MAX_MEMO = 10_000_000
const MAX_MARKS = 1000
const MAX_TEXT_BYTES = 64 << 20
const MAX_LONG_BYTES = 1 << 10
const MAX_LINE_BYTES = 1 << 10
const MAX_PICKLE_BYTES = 2 ** 30
const MAX_PROTOCOL = 5
const NEWLINE = 0x0a

/** Entries of the memo are kept as their difference from this, so that 0 says that there is none. */
const UNSET = 0x7fff_ffff

/**
 * Runs the pickle that begins at `start`. Bytes behind its STOP are left alone: `end` is their start.
 * @param url what errors call it
 * @throws FormatError `BadPickle`, with `fields.isCut` where more bytes might have helped
 */
export function runPickle(bytes: Uint8Array, url = 'pickle', start = 0): Pickle {
  return new Machine(bytes, url, start).run(MAX_OPCODES)!
}

/** `runPickle` in turns, for pickles that may be long. */
export async function runPickleInTurns(bytes: Uint8Array, url: string): Promise<Pickle> {
  const machine = new Machine(bytes, url, 0)
  const due = turnsWhenDue()
  for (;;) {
    const pickle = machine.run(OPCODES_AT_ONCE)
    if (pickle !== null) return pickle
    await due()
  }
}

class Machine {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  readonly #url: string
  readonly #tape: Pickle
  #at: number
  readonly #limit: number
  #opcodes = 0
  /** The start of the running opcode. */
  #opcodeAt = 0
  // Plain arrays are cheaper to make than typed ones, and most pickles describe one tensor.
  readonly #stack: number[] = []
  #depth = 0
  readonly #marks: number[] = []
  #markCount = 0
  #memo: Int32Array
  #memoSize = 0

  constructor(bytes: Uint8Array, url: string, start: number) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#url = url
    this.#at = start
    this.#limit = start + MAX_PICKLE_BYTES
    this.#tape = new Pickle(bytes, url, bytes.length - start)
    // Memory that is not written to is not taken.
    this.#memo = new Int32Array(Math.max(16, Math.min(MAX_MEMO, (bytes.length - start) >> 3)))
  }

  /** Runs opcodes. @returns the pickle at its end; null if there is more */
  run(opcodes: number): Pickle | null {
    for (let i = 0; i < opcodes; i++) {
      this.#opcodeAt = this.#at
      if (this.#at >= this.#bytes.length) throw this.#fault('an opcode', 'the end of the pickle', true)
      if (this.#at >= this.#limit) throw this.#fault(`a pickle of at most ${MAX_PICKLE_BYTES} bytes`, 'more')
      const opcode = this.#bytes[this.#at++]!
      if (opcode === OP.STOP) return this.#stop()
      this.#step(opcode)
    }
    this.#opcodes += opcodes
    if (this.#opcodes >= MAX_OPCODES) throw this.#fault(`at most ${MAX_OPCODES} opcodes`, 'more')
    return null
  }

  #stop(): Pickle {
    if (this.#markCount > 0) throw this.#fault('STOP without a mark left over', `${this.#markCount} of them`)
    if (this.#depth !== 1) throw this.#fault('STOP with one value on the stack', `${this.#depth}`)
    this.#tape.finish(this.#stack[0]!, this.#at)
    return this.#tape
  }

  #step(opcode: number): void {
    const tape = this.#tape
    switch (opcode) {
      case OP.PROTO: {
        const protocol = this.#uint8()
        if (protocol > MAX_PROTOCOL) throw this.#fault(`a protocol up to ${MAX_PROTOCOL}`, `${protocol}`)
        return
      }
      case OP.FRAME: {
        const length = this.#uint64()
        if (length > this.#bytes.length - this.#at) {
          throw this.#fault(`a frame within the ${this.#bytes.length} bytes`, `one of ${length}`, true)
        }
        return
      }
      case OP.NONE:
        this.#push(NONE)
        return
      case OP.NEWTRUE:
        this.#push(SINGLES.true)
        return
      case OP.NEWFALSE:
        this.#push(SINGLES.false)
        return
      case OP.BININT1:
        this.#push(integer(this.#uint8()))
        return
      case OP.BININT2:
        this.#push(integer(this.#uint16()))
        return
      case OP.BININT: {
        const value = this.#int32()
        this.#push(value >= 0 ? integer(value) : tape.number(value))
        return
      }
      case OP.LONG1:
        this.#long(this.#uint8())
        return
      case OP.LONG4:
        this.#long(this.#uint32())
        return
      case OP.BINFLOAT:
        this.#push(tape.number(this.#view.getFloat64(this.#take(8)), KIND.float))
        return
      case OP.SHORT_BINUNICODE:
        this.#text(KIND.text, this.#uint8())
        return
      case OP.BINUNICODE:
        this.#text(KIND.text, this.#uint32())
        return
      case OP.BINUNICODE8:
        this.#text(KIND.text, this.#uint64())
        return
      case OP.SHORT_BINSTRING:
        this.#text(KIND.latin, this.#uint8())
        return
      case OP.BINSTRING:
        this.#text(KIND.latin, this.#uint32())
        return
      case OP.SHORT_BINBYTES:
        this.#text(KIND.bytes, this.#uint8())
        return
      case OP.BINBYTES:
        this.#text(KIND.bytes, this.#uint32())
        return
      case OP.BINBYTES8:
      case OP.BYTEARRAY8:
        this.#text(KIND.bytes, this.#uint64())
        return
      case OP.EMPTY_TUPLE:
        this.#push(SINGLES.emptyTuple)
        return
      case OP.EMPTY_LIST:
        this.#push(tape.node(KIND.list))
        return
      case OP.EMPTY_DICT:
        this.#push(tape.node(KIND.dict))
        return
      case OP.EMPTY_SET:
        this.#push(tape.node(KIND.set))
        return
      case OP.MARK:
        if (this.#markCount === MAX_MARKS) throw this.#fault(`marks at most ${MAX_MARKS} deep`, 'more')
        this.#marks[this.#markCount++] = this.#depth
        return
      case OP.TUPLE: {
        const from = this.#popMark()
        this.#gather(from === this.#depth ? SINGLES.emptyTuple : tape.node(KIND.tuple), from)
        return
      }
      case OP.TUPLE1:
      case OP.TUPLE2:
      case OP.TUPLE3: {
        const from = this.#below(opcode - OP.TUPLE1 + 1)
        this.#gather(tape.node(KIND.tuple), from)
        return
      }
      case OP.LIST: {
        const from = this.#popMark()
        this.#gather(tape.node(KIND.list), from)
        return
      }
      case OP.FROZENSET: {
        const from = this.#popMark()
        this.#gather(tape.node(KIND.frozenset), from)
        return
      }
      case OP.DICT: {
        const from = this.#popMark()
        this.#expectPairs(from)
        this.#gather(tape.node(KIND.dict), from)
        return
      }
      case OP.APPEND:
        this.#append(this.#below(1), KIND.list)
        return
      case OP.APPENDS:
        this.#append(this.#popMark(), KIND.list)
        return
      case OP.SETITEM:
        this.#append(this.#below(2), KIND.dict)
        return
      case OP.SETITEMS: {
        const from = this.#popMark()
        this.#expectPairs(from)
        this.#append(from, KIND.dict)
        return
      }
      case OP.ADDITEMS:
        this.#append(this.#popMark(), KIND.set)
        return
      case OP.POP:
        // Python drops a mark where nothing stands above it.
        if (this.#markCount > 0 && this.#marks[this.#markCount - 1] === this.#depth) this.#markCount--
        else this.#depth = this.#below(1)
        return
      case OP.POP_MARK:
        this.#depth = this.#popMark()
        return
      case OP.BINPUT:
        this.#put(this.#uint8())
        return
      case OP.LONG_BINPUT:
        this.#put(this.#uint32())
        return
      case OP.MEMOIZE:
        this.#put(this.#memoSize)
        return
      case OP.BINGET:
        this.#get(this.#uint8())
        return
      case OP.LONG_BINGET:
        this.#get(this.#uint32())
        return
      case OP.GLOBAL: {
        const module = this.#line()
        this.#push(tape.global(module, this.#line()))
        return
      }
      case OP.STACK_GLOBAL: {
        const name = this.#pop()
        const module = this.#pop()
        if (!tape.isText(module) || !tape.isText(name)) throw this.#fault('two texts for STACK_GLOBAL', 'other values')
        const longest = Math.max(tape.bytes(module).length, tape.bytes(name).length)
        if (longest > MAX_LINE_BYTES) {
          throw this.#fault(`at most ${MAX_LINE_BYTES} bytes of a name for STACK_GLOBAL`, `${longest}`)
        }
        this.#push(tape.global(module, name))
        return
      }
      case OP.REDUCE: {
        const values = this.#pop()
        this.#push(tape.call(this.#pop(), values))
        return
      }
      case OP.NEWOBJ: {
        const values = this.#pop()
        this.#push(tape.note(this.#pop(), values))
        return
      }
      case OP.NEWOBJ_EX: {
        const keywords = this.#pop()
        const values = this.#pop()
        const note = tape.note(this.#pop(), values)
        tape.setPart(note, 'keywords', keywords)
        this.#push(note)
        return
      }
      case OP.BUILD: {
        const state = this.#pop()
        const target = this.#stack[this.#below(1)]!
        if (!tape.isNote(target)) throw this.#fault('an object for BUILD', tape.describe(target))
        tape.setPart(target, 'state', state)
        return
      }
      case OP.BINPERSID: {
        const id = this.#pop()
        const node = tape.node(KIND.persistent)
        tape.append(node, [id], 0, 1)
        this.#push(node)
        return
      }
      default: {
        const name = REFUSED[opcode]
        const got = `0x${opcode.toString(16).padStart(2, '0')}${name === undefined ? '' : ` (${name})`}`
        throw this.#fault('an opcode that torch.save writes', got)
      }
    }
  }

  #fault(expected: string, got: string, isCut = false): FormatError {
    const [url, offset] = [this.#url, this.#opcodeAt]
    const message = `${url}, byte ${offset}: expected ${expected}, got ${got}`
    return new FormatError('BadPickle', message, { url, offset, expected, got, ...(isCut && { isCut }) })
  }

  #push(handle: Handle): void {
    this.#stack[this.#depth++] = handle
  }

  /** The place in the stack from which on there are `count` values, above the last mark. */
  #below(count: number): number {
    const from = this.#depth - count
    const floor = this.#markCount === 0 ? 0 : this.#marks[this.#markCount - 1]!
    if (from < floor) throw this.#fault(`${count} on the stack`, `${this.#depth - floor}`)
    return from
  }

  #pop(): Handle {
    this.#depth = this.#below(1)
    return this.#stack[this.#depth]!
  }

  #popMark(): number {
    if (this.#markCount === 0) throw this.#fault('a mark', 'none')
    return this.#marks[--this.#markCount]!
  }

  #expectPairs(from: number): void {
    if ((this.#depth - from) % 2 !== 0) throw this.#fault('a value for each key', 'a key without one')
  }

  /** Moves the stack from a position on into a node, which takes its place. */
  #gather(node: Handle, from: number): void {
    if (from < this.#depth) this.#tape.append(node, this.#stack, from, this.#depth)
    this.#depth = from
    this.#push(node)
  }

  /** Appends the stack from a position on to the value below. */
  #append(from: number, kind: typeof KIND.list | typeof KIND.dict | typeof KIND.set): void {
    const to = this.#depth
    this.#depth = from
    const target = this.#stack[this.#below(1)]!
    const content = this.#tape.contentFor(target, kind)
    if (content === null) {
      const wanted = { [KIND.list]: 'a list', [KIND.dict]: 'a dict', [KIND.set]: 'a set' }[kind]
      throw this.#fault(`${wanted} or an object`, this.#tape.describe(target))
    }
    if (from < to) this.#tape.append(content, this.#stack, from, to)
  }

  #put(index: number): void {
    if (index >= MAX_MEMO) throw this.#fault(`at most ${MAX_MEMO} entries of the memo`, `number ${index}`)
    if (index >= this.#memo.length) {
      const larger = new Int32Array(Math.min(MAX_MEMO, Math.max(index + 1, this.#memo.length * 2)))
      larger.set(this.#memo)
      this.#memo = larger
    }
    if (this.#memo[index] === 0) this.#memoSize++
    this.#memo[index] = this.#stack[this.#below(1)]! ^ UNSET
  }

  #get(index: number): void {
    const entry = index < this.#memo.length ? this.#memo[index]! : 0
    if (entry === 0) throw this.#fault('an entry of the memo that was set', `number ${index}`)
    this.#push(entry ^ UNSET)
  }

  /** The position of the next bytes, which are skipped. */
  #take(byteLength: number): number {
    const at = this.#at
    if (byteLength > this.#bytes.length - at) {
      throw this.#fault(`${byteLength} bytes`, `${this.#bytes.length - at} up to the end of the pickle`, true)
    }
    this.#at += byteLength
    return at
  }

  #uint8(): number {
    return this.#bytes[this.#take(1)]!
  }

  #uint16(): number {
    return this.#view.getUint16(this.#take(2), true)
  }

  #uint32(): number {
    return this.#view.getUint32(this.#take(4), true)
  }

  #int32(): number {
    return this.#view.getInt32(this.#take(4), true)
  }

  #uint64(): number {
    return Number(this.#view.getBigUint64(this.#take(8), true))
  }

  #text(kind: typeof KIND.text | typeof KIND.latin | typeof KIND.bytes, byteLength: number): void {
    // Bytes are never decoded: an array of numpy may be long.
    if (kind !== KIND.bytes && byteLength > MAX_TEXT_BYTES)
      throw this.#fault(`at most ${MAX_TEXT_BYTES} bytes of text`, `${byteLength}`)
    this.#push(this.#tape.bytesAt(kind, this.#take(byteLength), byteLength))
  }

  #long(byteLength: number): void {
    if (byteLength > MAX_LONG_BYTES) throw this.#fault(`an integer of at most ${MAX_LONG_BYTES} bytes`, `${byteLength}`)
    this.#push(this.#tape.long(this.#take(byteLength), byteLength))
  }

  /** A line of GLOBAL, as a text. */
  #line(): Handle {
    const end = this.#bytes.subarray(this.#at, this.#at + MAX_LINE_BYTES + 1).indexOf(NEWLINE)
    if (end < 0)
      throw this.#fault(
        `a line of at most ${MAX_LINE_BYTES} bytes for GLOBAL`,
        'none',
        this.#bytes.length - this.#at <= MAX_LINE_BYTES,
      )
    const at = this.#take(end + 1)
    return this.#tape.bytesAt(KIND.text, at, end)
  }
}
