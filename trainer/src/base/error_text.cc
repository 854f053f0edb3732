// Recognises the exceptions of JSON, of std::filesystem and of streams by their types.
// Every other text stays as it is: dsat's own are written for people, and a user's own are known to him.
#include "base/error_text.h"

#include <fmt/format.h>

#include <filesystem>
#include <ios>

#include "dsat/error.h"

namespace dsat::trainer {

std::string error_text(const std::exception& error) {
  const std::string text = error.what();
  if (dynamic_cast<const Json::exception*>(&error) != nullptr) {
    // "[json.exception.type_error.302] type must be string, but is number"
    const size_t end = text.find("] ");
    return "a JSON value is not as expected: " + (end == std::string::npos ? text : text.substr(end + 2));
  }
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return fmt::format("{}: {}", file->path1().string(), file->code().message());
  }
  if (dynamic_cast<const std::ios_base::failure*>(&error) != nullptr) return "a file cannot be read or written";
  return text;
}

// TorchScript's text begins with where it failed and ends with why.
std::string libtorch_reason(const std::string& text) {
  const std::string first = text.substr(0, text.find('\n'));
  if (first.find("failed in the TorchScript interpreter") == std::string::npos) return first;
  const size_t end = text.find_last_not_of(" \n") + 1;
  const size_t begin = text.find_last_of('\n', end - 1) + 1;
  return "the TorchScript module failed: " + text.substr(begin, end - begin);
}

}  // namespace dsat::trainer
