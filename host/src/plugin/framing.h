// Messages over a stream: each is its length and then its bytes.
//
// Purpose: between dsat and a plugin's own process. A message is JSON text, or the bytes of a state.
// Threading: plain values. Errors: dsat::Error for a message that is none.
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

// The bytes that go over the stream.
std::string framed(const Json& message);
std::string framed_bytes(std::string_view bytes);

// Takes whole messages off what has arrived.
class FrameReader {
 public:
  void append(const char* data, size_t size) {
    buffer_.erase(0, std::exchange(read_, 0));
    buffer_.append(data, size);
  }
  // nullopt: more has to arrive first. Throws Error: too long, or no message.
  std::optional<Message> next();

 private:
  std::string buffer_;
  size_t read_ = 0;  // of it, what was taken
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_FRAMING_H_
