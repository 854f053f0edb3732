// Writes event files that TensorBoard reads: scalars, images, histograms and texts.
//
// A file is a sequence of TFRecords (length, masked CRC-32C, bytes) of tensorflow.Event messages. It is made with the
// first value, and each value is in the file when the call returns. Threading: one thread. Errors:
// dsat::Error, one line: an image of another shape or type, a histogram of nothing, a file that cannot be written.
#ifndef DSAT_TRAINER_EVENT_WRITER_H_
#define DSAT_TRAINER_EVENT_WRITER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace dsat::trainer {

class EventWriter {
 public:
  // `suffix`: the end of the file's name, so that each rank writes a file of its own.
  explicit EventWriter(std::filesystem::path folder, std::string suffix = "");

  void add_scalar(const std::string& tag, double value, int64_t step);
  // `image`: [3 or 1, height, width] or [height, width]; uint8, or floating point from 0 (black) to 1.
  void add_image(const std::string& tag, const at::Tensor& image, int64_t step);
  // A histogram of `values`, such as a parameter or a gradient, with `bins` bins of equal width from the least value to
  // the greatest.
  void add_histogram(const std::string& tag, const at::Tensor& values, int64_t step, int64_t bins = 64);
  // `text`: UTF-8; TensorBoard shows it as Markdown.
  void add_text(const std::string& tag, const std::string& text, int64_t step);

  const std::filesystem::path& folder() const { return folder_; }

 private:
  void write(const std::string& event);

  std::filesystem::path folder_;
  std::string suffix_;
  std::string file_;
  std::ofstream out_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_EVENT_WRITER_H_
