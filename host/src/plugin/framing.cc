// A message is four bytes of length, little-endian, one byte for the kind, and the body.
#include "plugin/framing.h"

#include <fmt/format.h>

#include "dsat/config/json.h"
#include "plugin/request_limits.h"

namespace dsat::host {
namespace {

constexpr size_t kLengthBytes = 4, kHeaderBytes = kLengthBytes + 1;
constexpr size_t kEnvelopeDepth = 8;  // around a configuration

std::string frame(Message::Kind kind, std::string_view body) {
  std::string out;
  out.reserve(kHeaderBytes + body.size());
  for (size_t i = 0; i < kLengthBytes; ++i) out += static_cast<char>((body.size() >> (8 * i)) & 0xff);
  out += static_cast<char>(kind);
  out += body;
  return out;
}

}  // namespace

Json Message::json() const {
  if (depth_of(body) > kMaxJsonDepth + kEnvelopeDepth) throw Error(DSAT_DATA_LOSS, "sent a message that is too deep");
  Json parsed = kind == Kind::json ? Json::parse(body, nullptr, /*allow_exceptions=*/false) : Json();
  if (!parsed.is_object()) throw Error(DSAT_DATA_LOSS, "sent a message that is no JSON object");
  return parsed;
}

std::string framed(const Json& message) { return frame(Message::Kind::json, config::text_of(message)); }

std::string framed_bytes(std::string_view bytes) { return frame(Message::Kind::bytes, bytes); }

std::optional<Message> FrameReader::next() {
  const size_t left = buffer_.size() - read_;
  if (left < kHeaderBytes) return std::nullopt;
  size_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<size_t>(static_cast<unsigned char>(buffer_[read_ + i])) << (8 * i);
  }
  const char kind = buffer_[read_ + kLengthBytes];
  if (kind != static_cast<char>(Message::Kind::json) && kind != static_cast<char>(Message::Kind::bytes)) {
    throw Error(DSAT_DATA_LOSS, "sent something that is no message");
  }
  if (length > kMaxMessageBytes) {
    throw Error(DSAT_DATA_LOSS, fmt::format("sent a message of {} bytes, more than {}", length, kMaxMessageBytes));
  }
  if (left < kHeaderBytes + length) return std::nullopt;
  Message message{static_cast<Message::Kind>(kind), buffer_.substr(read_ + kHeaderBytes, length)};
  read_ += kHeaderBytes + length;
  return message;
}

}  // namespace dsat::host
