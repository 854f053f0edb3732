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

}  // namespace dsat::trainer
