// Encodes scalars, images, histograms and texts as tensorflow.Event messages and appends them to a file as TFRecords.
// The file is made with the first value and flushed after each, so that TensorBoard can follow.
#include "dsat/trainer/event_writer.h"

#include <ATen/ops/histc.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "dsat/base/utf8.h"
#include "dsat/error.h"
#include "dsat/event_file/event_file.h"
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

// tensorflow.Summary.Value: 1 tag; the fields behind it stand where they are added.
std::string event_of(int64_t step, const ProtoMessage& value) {
  return summary_event(seconds_since_epoch(), step, value);
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

// One number a bin, packed as a repeated field of doubles is.
std::string packed(const std::vector<double>& values) {
  std::string bytes;
  for (const double value : values) {
    const std::string field = ProtoMessage().add_double(1, value).bytes();
    bytes += field.substr(field.size() - sizeof value);  // without its key
  }
  return bytes;
}

// tensorflow.HistogramProto: 1 min, 2 max, 3 num, 4 sum, 5 sum_squares, 6 bucket_limit, 7 bucket.
ProtoMessage histogram_of(const at::Tensor& values, int64_t bins) {
  const double least = values.min().item<double>(), greatest = values.max().item<double>();
  // All values alike: one of width 1 around them.
  const double from = least == greatest ? least - 0.5 : least, width = least == greatest ? 1 : greatest - least;
  const at::Tensor counts = at::histc(values, bins, from, from + width).to(at::kDouble);
  std::vector<double> limits, buckets;
  for (int64_t bin = 0; bin < bins; ++bin) {
    limits.push_back(from + width * static_cast<double>(bin + 1) / static_cast<double>(bins));
    buckets.push_back(counts[bin].item<double>());
  }
  return ProtoMessage()
      .add_double(1, least)
      .add_double(2, greatest)
      .add_double(3, static_cast<double>(values.numel()))
      .add_double(4, values.sum().item<double>())
      .add_double(5, values.square().sum().item<double>())
      .add_bytes(6, packed(limits))
      .add_bytes(7, packed(buckets));
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
    out_ << version_event(now);
  }
  out_ << event << std::flush;
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

void EventWriter::add_histogram(const std::string& tag, const at::Tensor& values, int64_t step, int64_t bins) {
  if (bins < 1) throw Error(fmt::format("add_histogram '{}': {} bins; expected 1 or more", tag, bins));
  if (!values.defined() || values.numel() == 0 || values.is_complex()) {
    throw Error(fmt::format("add_histogram '{}': there are no real numbers in this tensor; leave it out", tag));
  }
  const at::Tensor flat = values.detach().to(at::kCPU, at::kDouble).flatten();
  if (!flat.isfinite().all().item<bool>()) {
    throw Error(fmt::format("add_histogram '{}': NaN or infinity is among the values; leave them out", tag));
  }
  // Value: 5 histo.
  write(event_of(step, ProtoMessage().add_bytes(1, tag).add_bytes(5, histogram_of(flat, bins).bytes())));
}

void EventWriter::add_text(const std::string& tag, const std::string& text, int64_t step) {
  if (first_invalid_utf8(text) != std::string::npos) {
    throw Error(fmt::format("add_text '{}': the text is not UTF-8: encode it", tag));
  }
  // Value: 9 metadata {1 plugin_data {1 plugin_name}}, 8 tensor {1 dtype (7: string), 2 tensor_shape {2 dim {1 size}},
  // 8 string_val}.
  const ProtoMessage plugin = ProtoMessage().add_bytes(1, "text"), dim = ProtoMessage().add_varint(1, 1);
  const ProtoMessage shape = ProtoMessage().add_bytes(2, dim.bytes());
  const ProtoMessage tensor = ProtoMessage().add_varint(1, 7).add_bytes(2, shape.bytes()).add_bytes(8, text);
  write(event_of(step, ProtoMessage()
                           .add_bytes(1, tag)
                           .add_bytes(9, ProtoMessage().add_bytes(1, plugin.bytes()).bytes())
                           .add_bytes(8, tensor.bytes())));
}

}  // namespace dsat::trainer
