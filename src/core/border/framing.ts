/**
 * TFRecord framing. As with abi.ts, both compilers read this file. It stands alone, so that nothing else has to be
 * loaded for it.
 */

/** Bytes of TFRecord framing before a payload, behind it, and in all. */
export const HEADER_LENGTH = 12
export const FOOTER_LENGTH = 4
export const FRAMING_LENGTH = 16

/** The constant that the hook writes in place of a payload's checksum by default: the checksum of ASCII `0x12345678`. */
export const UNCHECKED_CRC = 0x062dc0b3
