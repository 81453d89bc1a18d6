export const SLOTS = 16_384;

const POLYNOMIAL = 0x1021;

/** CRC16 (XMODEM) of each byte. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1;
  return crc;
});

/**
 * Returns the slot of a key: the slot of its hash tag, the text between the first opening brace and the next closing
 * one. A key without a hash tag has the slot of the whole key.
 *
 * @see https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/ (key distribution model, hash tags)
 */
export function slotOf(key: string): number {
  const open = key.indexOf('{');
  const close = open === -1 ? -1 : key.indexOf('}', open + 1);
  return crc16(close > open + 1 ? key.slice(open + 1, close) : key) % SLOTS;
}

function crc16(text: string): number {
  let crc = 0;
  for (const byte of Buffer.from(text)) crc = ((crc << 8) & 0xffff) ^ TABLE[(crc >> 8) ^ byte]!;
  return crc;
}
