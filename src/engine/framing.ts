/** TFRecord framing. Like abi.ts, both compilers read this file; nothing else has to be loaded for it. */

/** Bytes of TFRecord framing before a payload, and around it. */
export const HEADER_LENGTH = 12
export const FRAMING_LENGTH = 16

/** What the hook writes in place of a payload's checksum, unless told to compute it: that of ASCII `0x12345678`. */
export const UNCHECKED_CRC = 0x062dc0b3
