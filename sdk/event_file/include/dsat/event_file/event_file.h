// TensorBoard's event files: TFRecord framing and the protocol-buffer wire format, as far as they need them.
//
// Sources: tensorflow/core/lib/io/record_writer.h (framing), the protocol-buffer encoding guide.
// Threading: pure functions. Errors: none.
#ifndef DSAT_EVENT_FILE_EVENT_FILE_H_
#define DSAT_EVENT_FILE_EVENT_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace dsat {

// CRC-32C (Castagnoli).
uint32_t crc32c(std::string_view bytes);
// The length, its checksum, the bytes, their checksum; little-endian.
std::string tfrecord(std::string_view bytes);

// A message under construction: fields in the order of the calls.
class ProtoMessage {
 public:
  ProtoMessage& add_varint(int field, uint64_t value);
  ProtoMessage& add_double(int field, double value);
  ProtoMessage& add_float(int field, float value);
  ProtoMessage& add_bytes(int field, std::string_view bytes);  // also for texts and messages
  const std::string& bytes() const { return bytes_; }

 private:
  void key(int field, int wire_type);
  std::string bytes_;
};

// The first record of a file.
std::string version_event(double wall_time_s);
// The record of one value (tensorflow.Summary.Value).
std::string summary_event(double wall_time_s, int64_t step, const ProtoMessage& value);

}  // namespace dsat

#endif  // DSAT_EVENT_FILE_EVENT_FILE_H_
