/** Types, held by the compiler: a line that must not compile says so. Nothing of it has to run. */

import { expect, expectTypeOf, it } from 'vitest'
import { type Kinds, kinds, optionsOf } from '#dist/base/options.js'
import {
  allclose,
  type Complex,
  createTrial,
  type Distribution,
  type ElementHistogram,
  type FailedRow,
  parseReductions,
  type ReductionValue,
  type Scan,
  type ScanOptions,
  type ScanRow,
  type StatisticName,
  type StatisticValue,
  type Tensor,
  type TensorValue,
  type Trial,
  type TrialscanError,
} from '#dist/index.js'

const never = (_: () => unknown): void => {}

it('reductions are names, in lists of any kind', () => {
  never(() => {
    const trial = {} as Trial
    trial.scan({ reductions: ['mean', 'abs_max'] })
    trial.scan({ reductions: 'all' })
    const chosen = ['min', 'abs_l2'] as const
    trial.scan({ reductions: chosen })
    trial.scan({ reductions: ['p95', 'count', 'histogram', 'histogram:64'] })
    const fromOutside: string[] = ['p95']
    trial.scan({ reductions: parseReductions(fromOutside) })
    // @ts-expect-error: there is no such reduction
    trial.scan({ reductions: ['median'] })
    // @ts-expect-error: who knows what is in it
    trial.scan({ reductions: fromOutside })
    // @ts-expect-error: of one name there is a list
    trial.scan({ reductions: 'mean' })
  })
  expectTypeOf(parseReductions('all')).toEqualTypeOf<readonly StatisticName[]>()
  expect(() => parseReductions(['p95', 'medium'])).toThrow(/expected the name of a reduction, got "medium"/)
})

it('reductions that are named in place have types, with no cast', () => {
  never(async () => {
    const tensor = {} as Tensor
    expectTypeOf(await tensor.reductionValue(0, 'mean')).toEqualTypeOf<number>()
    expectTypeOf(await tensor.reductionValue(0, 'abs_mean')).toEqualTypeOf<number>()
    expectTypeOf(await tensor.reductionValue(0, 'mean', { abs: true })).toEqualTypeOf<number>()
    expectTypeOf(await tensor.reductionValue(0, 'p99')).toEqualTypeOf<number>()
    expectTypeOf(await tensor.reductionValue(0, '~p50')).toEqualTypeOf<number>()
    expectTypeOf(await tensor.reductionValue(0, 'histogram:64')).toEqualTypeOf<ElementHistogram>()
    expectTypeOf(await tensor.reductionValue(0, 'sketch')).toEqualTypeOf<Distribution>()
    expectTypeOf(await tensor.reductionValue(0, 'sha256')).toEqualTypeOf<string>()
    expectTypeOf(await tensor.reductionValue({} as number, {} as StatisticName)).toEqualTypeOf<StatisticValue>()
    const complex: Complex = await tensor.reductionValue(0, 'mean')
    // @ts-expect-error: no reduction is a text
    const text: string = await tensor.reductionValue(0, 'mean')
    const trial = {} as Trial
    for await (const { error, reductions } of trial.scan({ reductions: ['mean', 'histogram', 'crc32c'] })) {
      if (error) continue
      expectTypeOf(reductions.mean).toEqualTypeOf<number>()
      expectTypeOf(reductions.histogram).toEqualTypeOf<ElementHistogram>()
      expectTypeOf(reductions.crc32c).toEqualTypeOf<string>()
      // @ts-expect-error: it was not asked for
      reductions.std
    }
    for await (const { reductions } of trial.scan({ reductions: ['l2'] }).columns()) {
      expectTypeOf(reductions.l2).toEqualTypeOf<Float64Array>()
    }
    const scans: Scan[] = [trial.scan({ reductions: ['mean'] }), trial.scan(), trial.scan({} as ScanOptions)]
    const dynamic = trial.scan({ steps: 0, reductions: parseReductions(['p95']) })
    expectTypeOf(dynamic).toEqualTypeOf<Scan>()
    for await (const row of dynamic) expectTypeOf(row.reductions.mean).toEqualTypeOf<ReductionValue | undefined>()
    return [complex, text, scans]
  })
})

it('the dtype of a value tells what its data are', () => {
  const told = (value: TensorValue): void => {
    if (value.dtype === 'float32') expectTypeOf(value.data).toEqualTypeOf<Float32Array>()
    if (value.dtype === 'int64') expectTypeOf(value.data).toEqualTypeOf<BigInt64Array>()
    if (value.dtype === 'string') expectTypeOf(value.data).toEqualTypeOf<readonly string[]>()
    if (value.dtype === 'float16') expectTypeOf(value.bits).toEqualTypeOf<Uint16Array | undefined>()
    switch (value.dtype) {
      case 'bool':
      case 'uint8':
        expectTypeOf(value.data).toEqualTypeOf<Uint8Array>()
    }
    // @ts-expect-error: it may be strings
    value.data.buffer
  }
  expectTypeOf<TensorValue<'float64' | 'complex128'>['data']>().toEqualTypeOf<Float64Array>()
  expectTypeOf<Awaited<ReturnType<Tensor['value']>>>().toEqualTypeOf<TensorValue>()
  never(() => told({} as TensorValue))
})

it('the error of a row tells what else it has', () => {
  never(() => {
    const row = {} as ScanRow
    // @ts-expect-error: a row of an index file that can't be read has none
    row.tensor.length
    // @ts-expect-error: reductions that were saved have none
    row.moments.count
    if (row.error) {
      expectTypeOf(row).toEqualTypeOf<FailedRow>()
      expectTypeOf(row.error).toEqualTypeOf<TrialscanError>()
      return
    }
    expectTypeOf(row.error).toEqualTypeOf<undefined>()
    expectTypeOf(row.tensor).toEqualTypeOf<string>()
    if (!row.saved) expectTypeOf(row.shape).toEqualTypeOf<readonly number[]>()
    if (!row.saved) row.moments.count
  })
})

it('options and their descriptions can not drift apart', () => {
  interface Options {
    readonly one?: number
    readonly two?: 'a' | 'b'
  }
  const two = kinds.oneOf<'a' | 'b'>(['a', 'b'])
  never(() => {
    optionsOf<Options>({ one: kinds.step, two })
    // @ts-expect-error: one is forgotten
    optionsOf<Options>({ two })
    // @ts-expect-error: three is none
    optionsOf<Options>({ one: kinds.step, two, three: kinds.flag })
    // @ts-expect-error: of another type
    optionsOf<Options>({ one: kinds.text, two })
    // @ts-expect-error: more than it takes
    optionsOf<Options>({ one: kinds.step, two: kinds.text })
    // @ts-expect-error: less than it takes
    optionsOf<Options>({ one: kinds.step, two: kinds.oneOf<'a'>(['a']) })
    // @ts-expect-error: null is a value
    optionsOf<Options>({ one: kinds.orNull(kinds.step), two })
  })
  expectTypeOf<keyof Kinds<Options>>().toEqualTypeOf<'one' | 'two'>()
})

it('options that are wrong do not compile either', () => {
  never(async () => {
    // @ts-expect-error: written otherwise
    await createTrial('path', { range_steps: [0, 1] })
    const trial = {} as Trial
    // @ts-expect-error: it takes none
    trial.tensors({ collection: 'gradients' })
    // @ts-expect-error: { mode: 'EVAL' }
    await trial.tensor('loss').value(40, 'EVAL')
    // @ts-expect-error: no tensor
    allclose([1], [1])
  })
})
