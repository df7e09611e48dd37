// Pictures with at most 256 colours: a third of the bytes, and nobody sees a difference on a page. Reads what Chromium
// writes (8 bits a channel, not interlaced) and writes a PNG with a palette.

import { deflateSync, inflateSync } from 'node:zlib'

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** The bytes of a picture with fewer colours. */
export function withPalette(png) {
  const { width, height, pixels } = read(png)
  const counts = new Map()
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1)
  const { palette, of } = choose(counts)
  const lines = Buffer.alloc(height * (width + 1))
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) lines[y * (width + 1) + 1 + x] = of.get(pixels[y * width + x])
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 3, 0, 0, 0], 8)
  const colours = Buffer.from(palette.flatMap(pixel => [pixel >> 16, (pixel >> 8) & 255, pixel & 255]))
  const data = deflateSync(lines, { level: 9, memLevel: 9 })
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', head),
    chunk('PLTE', colours),
    chunk('IDAT', data),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** Width, height, and each pixel as 0xRRGGBB. */
function read(png) {
  let [width, height, channels] = [0, 0, 0]
  const data = []
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at)
    const kind = png.toString('latin1', at + 4, at + 8)
    const body = png.subarray(at + 8, at + 8 + length)
    if (kind === 'IHDR') {
      width = body.readUInt32BE(0)
      height = body.readUInt32BE(4)
      channels = { 2: 3, 6: 4 }[body[9]]
      if (body[8] !== 8 || !channels || body[12] !== 0) throw new Error('no PNG as Chromium writes it')
    } else if (kind === 'IDAT') data.push(body)
    at += 12 + length
  }
  const bytes = inflateSync(Buffer.concat(data))
  const stride = width * channels
  const rows = Buffer.alloc(height * stride)
  for (let y = 0; y < height; y++) {
    const filter = bytes[y * (stride + 1)]
    for (let x = 0; x < stride; x++) {
      const left = x >= channels ? rows[y * stride + x - channels] : 0
      const up = y > 0 ? rows[(y - 1) * stride + x] : 0
      const corner = y > 0 && x >= channels ? rows[(y - 1) * stride + x - channels] : 0
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter]
      rows[y * stride + x] = bytes[y * (stride + 1) + 1 + x] + guess
    }
  }
  const pixels = new Uint32Array(width * height)
  for (let i = 0; i < pixels.length; i++)
    pixels[i] = (rows[i * channels] << 16) | (rows[i * channels + 1] << 8) | rows[i * channels + 2]
  return { width, height, pixels }
}

function paeth(left, up, corner) {
  const guess = left + up - corner
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)]
  return a <= b && a <= c ? left : b <= c ? up : corner
}

const channel = (pixel, k) => (pixel >> (16 - 8 * k)) & 255

/** Median cut: the box with the widest colours is cut in two until there are 256. */
function choose(counts) {
  const boxes = [[...counts.keys()]]
  const spread = box => {
    let best = [0, 0]
    for (const k of [0, 1, 2]) {
      let [low, high] = [255, 0]
      for (const pixel of box) {
        low = Math.min(low, channel(pixel, k))
        high = Math.max(high, channel(pixel, k))
      }
      if (high - low > best[0]) best = [high - low, k]
    }
    return best
  }
  const spreads = [spread(boxes[0])]
  while (boxes.length < 256) {
    const weight = i => spreads[i][0] * Math.sqrt(boxes[i].reduce((sum, pixel) => sum + counts.get(pixel), 0))
    let widest = -1
    for (let i = 0; i < boxes.length; i++)
      if (boxes[i].length > 1 && (widest < 0 || weight(i) > weight(widest))) widest = i
    if (widest < 0) break
    const [, k] = spreads[widest]
    const box = boxes[widest].sort((a, b) => channel(a, k) - channel(b, k))
    const half = box.reduce((sum, pixel) => sum + counts.get(pixel), 0) / 2
    let cut = 1
    for (let sum = counts.get(box[0]); cut < box.length - 1 && sum < half; cut++) sum += counts.get(box[cut])
    boxes.splice(widest, 1, box.slice(0, cut), box.slice(cut))
    spreads.splice(widest, 1, spread(boxes[widest]), spread(boxes[widest + 1]))
  }
  // The colour that a box has most of stands for it: flat areas keep theirs exactly.
  const palette = boxes.map(box => box.reduce((a, b) => (counts.get(b) > counts.get(a) ? b : a)))
  return { palette, of: new Map(boxes.flatMap((box, i) => box.map(pixel => [pixel, i]))) }
}

function crc(bytes) {
  let sum = ~0
  for (const byte of bytes) {
    sum ^= byte
    for (let k = 0; k < 8; k++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0)
  }
  return ~sum >>> 0
}

function chunk(kind, body) {
  const out = Buffer.alloc(12 + body.length)
  out.writeUInt32BE(body.length, 0)
  out.write(kind, 4, 'latin1')
  body.copy(out, 8)
  out.writeUInt32BE(crc(out.subarray(4, 8 + body.length)), 8 + body.length)
  return out
}
