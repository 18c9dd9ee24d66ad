// The only allocator, and the only file that grows memory: a stack that is emptied at the start of every job.
//
// Pointers are unsigned and can lie above 2 GiB; TypeScript sees them as `>>> 0`.

/** Every buffer starts on a multiple of this and has at least this many readable bytes below and above it. */
const PADDING: usize = 128
const LAST_PAGE: u64 = 65535

let top: usize = __heap_base

/** Forgets every reservation. */
export function arenaReset(): void {
  top = __heap_base
}

/**
 * Reserves a buffer until the next reset.
 * @returns its address, a multiple of 128; 0 when memory can't grow that far
 */
export function arenaReserve(byteLength: u32): usize {
  return take((<u64>top + 2 * PADDING - 1) & ~(<u64>PADDING - 1), byteLength)
}

/**
 * Reserves a few numbers, without padding.
 * @returns the address, a multiple of 8; 0 when memory can't grow that far
 */
export function arenaPush(byteLength: u32): usize {
  return take((<u64>top + 7) & ~7, byteLength)
}

function take(start: u64, byteLength: u32): usize {
  const end = start + <u64>byteLength
  const pages = (end + PADDING + 0xffff) >> 16
  if (pages > LAST_PAGE) return 0
  const missing = <i32>pages - memory.size()
  // Memory grows by at least half, so that many small reservations don't cause many growths.
  if (missing > 0) {
    const spare = min(memory.size() >> 1, <i32>(LAST_PAGE - pages))
    if (memory.grow(missing + spare) < 0 && memory.grow(missing) < 0) return 0
  }
  top = <usize>end
  return <usize>start
}

/** The start of the next reservation, for arenaRelease. */
export function arenaMark(): usize {
  return top
}

/** Frees all that was reserved since the mark. */
export function arenaRelease(mark: usize): void {
  if (mark >= __heap_base && mark < top) top = mark
}
