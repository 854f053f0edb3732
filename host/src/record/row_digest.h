// Adds a digest to the JSON text of a row, because a value that was changed on disk may still look valid.
//
// The text of an object gets a last member, `digest`, over the object and the rest of what its row says. A row without
// one is believed: whoever edits a row by hand takes its digest out. Threading: pure functions. Errors: without_digest
// throws dsat::Error, DSAT_DATA_LOSS, for a row that is not as it was written.
#ifndef DSAT_HOST_RECORD_ROW_DIGEST_H_
#define DSAT_HOST_RECORD_ROW_DIGEST_H_

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "dsat/error.h"

namespace dsat::host {

inline constexpr std::string_view kDigestBegin = "\"digest\":\"", kDigestEnd = "\"}";
inline constexpr size_t kDigestDigits = 16;
inline constexpr size_t kDigestMember = kDigestBegin.size() + kDigestDigits + kDigestEnd.size();

// FNV-1a, 64 bits; it protects from accidents, not from people.
inline std::string row_digest(std::string_view object, std::string_view rest) {
  uint64_t hash = 14695981039346656037u;
  for (const std::string_view part : {object, rest}) {
    for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return fmt::format("{:016x}", hash);
}

// Text that is no object is not changed.
inline std::string with_digest(std::string text, std::string_view rest = {}) {
  if (text.size() < 2 || text.back() != '}') return text;
  const std::string digest = row_digest(text, rest);
  text.pop_back();
  if (text.size() > 1) text += ',';
  return text.append(kDigestBegin).append(digest).append(kDigestEnd);
}

// `name` is for the error: "its plan is not as it was written".
inline std::string without_digest(std::string text, const char* name, std::string_view rest = {}) {
  if (text.size() <= kDigestMember) return text;
  const size_t at = text.size() - kDigestMember;
  if (text.compare(at, kDigestBegin.size(), kDigestBegin) != 0) return text;
  const std::string digest = text.substr(at + kDigestBegin.size(), kDigestDigits);
  text.resize(at);
  if (text.back() == ',') text.pop_back();
  text += '}';
  if (digest == row_digest(text, rest)) return text;
  throw Error(DSAT_DATA_LOSS, fmt::format("its {} is not as it was written", name));
}

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_ROW_DIGEST_H_
