// Puts an image's chunks together, each with its checksum.
// Images are stored with filter 0 in every row and packed by zlib.
#include "files/png.h"

#include <fmt/format.h>
#include <zlib.h>

#include "dsat/error.h"

namespace dsat::trainer {
namespace {

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift & 0xFF));
  return bytes;
}

const Bytef* bytes_of(const std::string& text) { return reinterpret_cast<const Bytef*>(text.data()); }

std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const uLong crc = ::crc32(0, bytes_of(body), static_cast<uInt>(body.size()));
  return big_endian(static_cast<uint32_t>(data.size())) + body + big_endian(static_cast<uint32_t>(crc));
}

}  // namespace

std::string encode_png(const uint8_t* pixels, uint32_t width, uint32_t height, int channels) {
  const size_t row = static_cast<size_t>(width) * static_cast<size_t>(channels);
  std::string raw;
  for (size_t y = 0; y < height; ++y) {
    raw.push_back('\0');  // the row's filter: none
    raw.append(reinterpret_cast<const char*>(pixels) + y * row, row);
  }
  uLongf size = ::compressBound(static_cast<uLong>(raw.size()));
  std::string packed(size, '\0');
  const int status =
      ::compress(reinterpret_cast<Bytef*>(packed.data()), &size, bytes_of(raw), static_cast<uLong>(raw.size()));
  if (status != Z_OK) throw Error(DSAT_INTERNAL, fmt::format("zlib cannot compress an image: status {}", status));
  packed.resize(size);
  // 8 bits a channel; colour type 0 is grey, 2 is RGB; no interlacing.
  const std::string header =
      big_endian(width) + big_endian(height) + std::string{8, channels == 3 ? '\2' : '\0', 0, 0, 0};
  return "\x89PNG\r\n\x1A\n" + png_chunk("IHDR", header) + png_chunk("IDAT", packed) + png_chunk("IEND", "");
}

}  // namespace dsat::trainer
