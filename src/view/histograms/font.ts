/** Letters of 5 by 8 pixels: a digit to the base of 32 for each row, whose highest bit is on the left. */

const GLYPHS: Readonly<Record<string, string>> = Object.fromEntries(
  `0ehjlphe0 14c4444e0 2eh1248v0 3v2421he0 426aiv220 5vgu11he0 668guhhe0 7v1248880 8ehhehhe0 9ehhf12c0
  Aehhvhhh0 Buhhuhhu0 Cehggghe0 Duhhhhhu0 Evgguggv0 Fvgguggg0 Gehgnhhf0 Hhhhvhhh0 Ie44444e0 J72222ic0
  Khikokih0 Lggggggv0 Mhrllhhh0 Nhhpljhh0 Oehhhhhe0 Puhhuggg0 Qehhhlid0 Ruhhukih0 Sfgge11u0 Tv4444440
  Uhhhhhhe0 Vhhhhha40 Whhhllla0 Xhha4ahh0 Yhhha4440 Zv1248gv0 a00e1fhf0 bggmphhu0 c00egghe0 d11djhhf0
  e00ehvge0 f698s8880 g00fhhf1e hggmphhh0 i40c444e0 j206222ic kggikoki0 lc44444e0 m00qllhh0 n00mphhh0
  o00ehhhe0 p00uhhugg q00fhhf11 r00mpggg0 s00fge1u0 t88s88960 u00hhhjd0 v00hhha40 w00hhlla0 x00ha4ah0
  y00hhhf1e z00v248v0 .00000cc0 ,00000c48 :00cc0cc0 -000v0000 +0044v440 _0000000v /01248g00 (24888420
  )84222480 [e88888e0 ]e22222e0 %op248j30 =00v0v000 <248g8420 >84212480 #aavavaa0 *04lel400 '44000000
  @ehnlnge0 |44444440 !44444040`
    .split(/\s+/)
    .map(glyph => [glyph[0], glyph.slice(1)]),
)
/** A box, for characters without a glyph. */
const OTHER = 'vhhhhhv0'

/** The distance in pixels from one letter to the next. */
export const ADVANCE = 6
export const ROWS = 8

/** Calls `dot` for each pixel of a text. */
export function eachDot(text: string, dot: (x: number, y: number) => void): void {
  for (const [i, letter] of [...text].entries()) {
    if (letter === ' ') continue
    const glyph = GLYPHS[letter] ?? OTHER
    for (let y = 0; y < ROWS; y++) {
      const bits = Number.parseInt(glyph[y]!, 32)
      for (let x = 0; x < 5; x++) if (bits & (16 >> x)) dot(i * ADVANCE + x, y)
    }
  }
}
