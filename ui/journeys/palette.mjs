// Makes pictures of pages small: a PNG of the 256 colours that occur most. Other colours, at the edges of letters, become the nearest.
import { deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const COLOURS = 256;

const CRC = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

function chunk(kind, content) {
  const body = Buffer.concat([Buffer.from(kind, "latin1"), content]);
  let crc = 0xffffffff;
  for (const byte of body) crc = CRC[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  sum.writeUInt32BE((crc ^ 0xffffffff) >>> 0);
  return Buffer.concat([length, body, sum]);
}

/** The chunks of a PNG by kind; those of the same kind together. */
function chunksOf(png) {
  const chunks = {};
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    (chunks[png.toString("latin1", at + 4, at + 8)] ??= []).push(png.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  return chunks;
}

/** The bytes of each pixel, without the filters of the lines. */
function pixelsOf(data, width, height, size) {
  const line = width * size;
  const pixels = Buffer.alloc(line * height);
  for (let y = 0; y < height; y += 1) {
    const filter = data[y * (line + 1)];
    for (let x = 0; x < line; x += 1) {
      const here = y * line + x;
      const left = x < size ? 0 : pixels[here - size];
      const above = y === 0 ? 0 : pixels[here - line];
      const corner = x < size || y === 0 ? 0 : pixels[here - line - size];
      const [a, b, c] = [Math.abs(above - corner), Math.abs(left - corner), Math.abs(left + above - 2 * corner)];
      const paeth = a <= b && a <= c ? left : b <= c ? above : corner;
      pixels[here] = data[y * (line + 1) + 1 + x] + [0, left, above, (left + above) >> 1, paeth][filter];
    }
  }
  return pixels;
}

/** Takes a PNG of Chromium: eight bits for each colour, not interlaced. */
export function withPalette(png) {
  const { IHDR: [header], IDAT } = chunksOf(png);
  const [width, height, size] = [header.readUInt32BE(0), header.readUInt32BE(4), header[9] === 6 ? 4 : 3];
  const pixels = pixelsOf(inflateSync(Buffer.concat(IDAT)), width, height, size);
  const counts = new Map();
  const colours = new Uint32Array(width * height);
  for (let index = 0; index < colours.length; index += 1) {
    const colour = (pixels[index * size] << 16) | (pixels[index * size + 1] << 8) | pixels[index * size + 2];
    colours[index] = colour;
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const palette = [...counts].sort(([, one], [, other]) => other - one).slice(0, COLOURS).map(([colour]) => colour);
  const places = new Map(palette.map((colour, place) => [colour, place]));
  const distance = (one, other) => [16, 8, 0].reduce((sum, shift) => sum + (((one >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);
  for (const colour of counts.keys())
    if (!places.has(colour)) places.set(colour, palette.reduce((best, other, place) => (distance(colour, other) < distance(colour, palette[best]) ? place : best), 0));
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) lines[y * (width + 1) + 1 + x] = places.get(colours[y * width + x]);
  const indexed = Buffer.from(header);
  indexed[8] = 8;
  indexed[9] = 3;
  const table = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([SIGNATURE, chunk("IHDR", indexed), chunk("PLTE", table), chunk("IDAT", deflateSync(lines, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}
