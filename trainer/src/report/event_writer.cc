// Encodes scalars and images as tensorflow.Event messages and appends them to a file as TFRecords.
// The file is made with the first value and flushed after each, so that TensorBoard can follow.
#include "dsat/trainer/event_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "dsat/base/tfrecord.h"
#include "dsat/error.h"
#include "files/png.h"

namespace dsat::trainer {
namespace {

double seconds_since_epoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof name - 1);
  return name;
}

// tensorflow.Event: 1 wall_time, 2 step, 5 summary; Summary: 1 value; Value: 1 tag.
std::string event_of(int64_t step, const ProtoMessage& value) {
  const ProtoMessage summary = ProtoMessage().add_bytes(1, value.bytes());
  return ProtoMessage()
      .add_double(1, seconds_since_epoch())
      .add_varint(2, static_cast<uint64_t>(step))
      .add_bytes(5, summary.bytes())
      .bytes();
}

// uint8, [height, width, channels], contiguous.
at::Tensor pixels_of(const at::Tensor& image) {
  at::Tensor chw = image.dim() == 2 ? image.unsqueeze(0) : image;
  const bool is_image = chw.dim() == 3 && (chw.size(0) == 1 || chw.size(0) == 3) && chw.size(1) > 0 && chw.size(2) > 0;
  if (!is_image || (!chw.is_floating_point() && chw.scalar_type() != at::kByte)) {
    throw Error(fmt::format(
        "add_image: a tensor of type {} and shape [{}]; expected uint8 or floating point and [height, width] "
        "or [1 or 3, height, width]",
        c10::toString(image.scalar_type()), fmt::join(image.sizes(), ", ")));
  }
  chw = chw.detach().cpu();
  if (chw.is_floating_point()) chw = chw.to(at::kFloat).clamp(0, 1).mul(255).add(0.5).to(at::kByte);
  return chw.permute({1, 2, 0}).contiguous();
}

}  // namespace

EventWriter::EventWriter(std::filesystem::path folder, std::string suffix)
    : folder_(std::move(folder)), suffix_(std::move(suffix)) {}

void EventWriter::write(const std::string& event) {
  if (file_.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    const double now = seconds_since_epoch();
    file_ = (folder_ /
             fmt::format("events.out.tfevents.{}.{}.{}{}", static_cast<int64_t>(now), host_name(), ::getpid(), suffix_))
                .string();
    out_.open(file_, std::ios::binary);
    out_ << tfrecord(ProtoMessage().add_double(1, now).add_bytes(3, "brain.Event:2").bytes());
  }
  out_ << tfrecord(event) << std::flush;
  if (!out_) {
    throw Error(DSAT_INTERNAL, fmt::format("{}: cannot be written: is the folder writable, the disk full?", file_));
  }
}

void EventWriter::add_scalar(const std::string& tag, double value, int64_t step) {
  // Value: 2 simple_value.
  write(event_of(step, ProtoMessage().add_bytes(1, tag).add_float(2, static_cast<float>(value))));
}

void EventWriter::add_image(const std::string& tag, const at::Tensor& image, int64_t step) {
  const at::Tensor pixels = pixels_of(image);
  const int channels = static_cast<int>(pixels.size(2));
  const auto height = static_cast<uint32_t>(pixels.size(0)), width = static_cast<uint32_t>(pixels.size(1));
  // Value: 4 image; Image: 1 height, 2 width, 3 colourspace, 4 encoded_image_string.
  const ProtoMessage encoded = ProtoMessage()
                                   .add_varint(1, height)
                                   .add_varint(2, width)
                                   .add_varint(3, static_cast<uint64_t>(channels))
                                   .add_bytes(4, encode_png(pixels.data_ptr<uint8_t>(), width, height, channels));
  write(event_of(step, ProtoMessage().add_bytes(1, tag).add_bytes(4, encoded.bytes())));
}

}  // namespace dsat::trainer
