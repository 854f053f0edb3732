// Frames records with masked CRC-32C sums, and encodes the protocol-buffer types of event files. All numbers are
// little-endian on every machine.
#include "dsat/event_file/event_file.h"

#include <array>
#include <cstring>

namespace dsat {
namespace {

std::array<uint32_t, 256> make_table() {
  constexpr uint32_t kReflectedPolynomial = 0x82F63B78u;
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    table[i] = crc;
  }
  return table;
}

template <typename T>
std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes.push_back(static_cast<char>(value >> 8 * i & 0xFF));
  return bytes;
}

template <typename Bits, typename Number>
Bits bits_of(Number number) {
  static_assert(sizeof(Bits) == sizeof number);
  Bits bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

// TFRecord's mask lets a record hold records.
uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = make_table();
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<uint8_t>(byte)) & 0xFF];
  return ~crc;
}

std::string tfrecord(std::string_view bytes) {
  const std::string length = little_endian(static_cast<uint64_t>(bytes.size()));
  std::string record = length + little_endian(masked_crc32c(length));
  record.append(bytes);
  return record + little_endian(masked_crc32c(bytes));
}

void ProtoMessage::key(int field, int wire_type) {
  bytes_.push_back(static_cast<char>(field << 3 | wire_type));  // one byte: fields are below 16
}

ProtoMessage& ProtoMessage::add_varint(int field, uint64_t value) {
  key(field, 0);
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>((value & 0x7F) | 0x80));
  bytes_.push_back(static_cast<char>(value));
  return *this;
}

ProtoMessage& ProtoMessage::add_double(int field, double value) {
  key(field, 1);
  bytes_ += little_endian(bits_of<uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::add_float(int field, float value) {
  key(field, 5);
  bytes_ += little_endian(bits_of<uint32_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::add_bytes(int field, std::string_view bytes) {
  key(field, 2);
  uint64_t size = bytes.size();
  for (; size >= 0x80; size >>= 7) bytes_.push_back(static_cast<char>((size & 0x7F) | 0x80));
  bytes_.push_back(static_cast<char>(size));
  bytes_.append(bytes);
  return *this;
}

// tensorflow.Event: 1 wall_time, 2 step, 3 file_version, 5 summary; Summary: 1 value.
std::string version_event(double wall_time_s) {
  return tfrecord(ProtoMessage().add_double(1, wall_time_s).add_bytes(3, "brain.Event:2").bytes());
}

std::string summary_event(double wall_time_s, int64_t step, const ProtoMessage& value) {
  return tfrecord(ProtoMessage()
                      .add_double(1, wall_time_s)
                      .add_varint(2, static_cast<uint64_t>(step))
                      .add_bytes(5, ProtoMessage().add_bytes(1, value.bytes()).bytes())
                      .bytes());
}

}  // namespace dsat
