/** The types of the used part of gifenc, which has none of its own. */
declare module 'gifenc' {
  export function quantize(rgba: Uint8ClampedArray, colors: number): number[][]
  export function applyPalette(rgba: Uint8ClampedArray, palette: number[][]): Uint8Array
  export function GIFEncoder(): {
    writeFrame(
      indices: Uint8Array,
      width: number,
      height: number,
      options: { palette?: number[][]; delay: number },
    ): void
    finish(): void
    bytes(): Uint8Array
  }
  /** The default export under Node.js, which loads the package as CommonJS. */
  const gifenc: { readonly GIFEncoder: typeof GIFEncoder }
  export default gifenc
}
