// Messages between dsat and a plugin's process over a stream. A message is JSON text, or the bytes of a state.
// Threading: plain values. Errors: dsat::Error for data that is no message.
#ifndef DSAT_HOST_PLUGIN_FRAMING_H_
#define DSAT_HOST_PLUGIN_FRAMING_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "dsat/error.h"

namespace dsat::host {

inline constexpr size_t kMaxMessageBytes = size_t{300} << 20;  // a state and its frame

struct Message {
  enum class Kind : char { json = 'J', bytes = 'B' };
  Kind kind = Kind::json;
  std::string body;

  Json json() const;  // throws Error: no JSON object
};

// Return the bytes to send.
std::string framed(const Json& message);
std::string framed_bytes(std::string_view bytes);

// Extracts complete messages from received data.
class FrameReader {
 public:
  void append(const char* data, size_t size) {
    buffer_.erase(0, std::exchange(read_, 0));
    buffer_.append(data, size);
  }
  // Returns nullopt if more data is needed. Throws Error: too long, or no message.
  std::optional<Message> next();

 private:
  std::string buffer_;
  size_t read_ = 0;  // bytes of `buffer_` that were used
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_FRAMING_H_
