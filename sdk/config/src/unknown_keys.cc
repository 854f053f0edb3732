// unknown_keys(): keys that DeepSpeed would silently ignore, each with the known key that was probably meant.
// Suggestions come from edit distances.
#include <algorithm>
#include <cctype>

#include "dsat/base/spelling.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "known_keys.h"
#include "zero_values.h"

namespace dsat::config {
namespace {

// Shorter names ("stage", "type") match at another depth, or as a beginning, by chance.
constexpr size_t kTellingLength = 8;

std::string fold(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string trim(std::string_view text) {
  const char* const kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1));
}

std::string join(const std::string& section, const std::string& name) {
  return section.empty() ? name : section + "." + name;
}

bool has_dot(const std::string& name) { return name.find('.') != std::string::npos; }

// The nested form of a dotted key: {"zero_optimization": {"stage": ...}} for "zero_optimization.stage".
std::string nested(const std::string& key) {
  std::string begin = "{\"", end = "...}";
  for (const char c : key) {
    if (c != '.') begin += c;
    if (c == '.') begin += "\": {\"", end += "}";
  }
  return begin + "\": " + end;
}

// The number of slips up to which two words count as the same: a quarter of the letters, so that a user's own short key
// ("comment") is not taken for one of DeepSpeed's ("comet"), and two at most, so that another engine's long one
// ("pipe_parallel_size") is not either. Where DeepSpeed refuses all unknown keys: a third.
size_t tolerance(const std::string& section, size_t length) {
  return is_closed(section) ? length / 3 : std::min<size_t>(length / 4, 2);
}

std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c == '_') words.emplace_back();
    if (c != '_') words.back() += c;
  }
  return words;
}

// Is `typed` the name `known` without one of its words (train_micro_batch_per_gpu)? Names of few words do not count,
// since a user's own key may match by chance.
bool lacks_a_word(const std::string& typed, const std::string& known) {
  constexpr size_t kTellingWords = 3;
  if (std::count(known.begin(), known.end(), '_') != std::count(typed.begin(), typed.end(), '_') + 1) return false;
  const std::vector<std::string> some = words_of(typed), all = words_of(known);
  if (some.size() < kTellingWords) return false;
  const auto [left_out, next] = std::mismatch(all.begin(), all.end(), some.begin(), some.end());
  return std::equal(left_out + 1, all.end(), next, some.end());
}

std::string nearest_member(const std::string& section, const std::string& folded) {
  const std::vector<std::string>& members = section_members(section);
  const std::vector<std::string_view> known(members.begin(), members.end());
  const std::string_view slip = nearest_name(folded, known, tolerance(section, folded.size()));
  if (!slip.empty() || (folded.size() < kTellingLength && !is_closed(section))) return std::string(slip);
  // The name may end early (train_micro_batch_size) or lack a word.
  for (const std::string& name : members) {
    if (name.compare(0, folded.size(), folded) == 0 || lacks_a_word(folded, name)) return name;
  }
  return {};
}

// The right name at the wrong depth. Users confuse the top level and zero_optimization, and put whole sections there.
std::string other_depth(const std::string& section, const std::string& folded) {
  const std::string other = section.empty() ? "zero_optimization" : "";
  const std::string key = join(other, folded);
  const KeyKind kind = key_kind(key);
  const bool is_telling = folded.size() >= kTellingLength || (is_closed(section) && kind == KeyKind::kSection);
  return is_telling && kind != KeyKind::kUnknown ? key : std::string();
}

// Does the name have a mark before or behind a known one ("_optimizer", "#fp16")? So people switch a key off.
bool is_switched_off(const std::string& section, const std::string& name) {
  const auto is_mark = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; };
  size_t begin = 0, end = name.size();
  while (begin < end && is_mark(name[begin])) ++begin;
  while (end > begin && is_mark(name[end - 1])) --end;
  const std::string bare = name.substr(begin, end - begin);
  return bare != name && trim(name) == name && key_kind(join(section, bare)) != KeyKind::kUnknown;
}

// May the key that was meant have this value?
bool takes(const std::string& key, const Json& value) {
  const KeyKind kind = key_kind(key);
  if (kind == KeyKind::kSection) return value.is_object() || value.is_boolean();
  return kind == KeyKind::kFree || !value.is_object();
}

// Can the name be nothing else than the suggestion?
bool is_misspelt(const UnknownKey& unknown, const Json& config, const std::string& section, const std::string& name,
                 const Json& value) {
  if (unknown.suggestion.empty() || find(config, unknown.suggestion) != nullptr) return false;
  if (!takes(unknown.suggestion, value)) return false;
  if (unknown.dotted) return true;
  if (unknown.stray_space) return unknown.refused;
  const std::string folded = fold(trim(name));
  const std::string meant = unknown.suggestion.substr(unknown.suggestion.rfind('.') + 1);
  const bool same_section = unknown.suggestion == join(section, meant);
  if (folded == meant) return same_section || unknown.refused;
  const bool telling = folded.size() >= kTellingLength || is_closed(section);
  return same_section && telling && edit_distance(folded, meant, 2) <= 1;
}

void walk(const Json& config, const Json& object, const std::string& section, std::vector<UnknownKey>* out) {
  for (const auto& [name, value] : object.items()) {
    const std::string key = join(section, name);
    const KeyKind kind = has_dot(name) ? KeyKind::kUnknown : key_kind(key);
    if (kind == KeyKind::kUnknown) {
      out->push_back(describe_unknown(section, name));
      out->back().misspelt = is_misspelt(out->back(), config, section, name, value);
    } else if (kind == KeyKind::kSection && value.is_object()) {
      walk(config, value, key, out);
    }
  }
}

}  // namespace

UnknownKey describe_unknown(const std::string& section, const std::string& name) {
  UnknownKey unknown;
  unknown.key = join(section, name);
  unknown.refused = is_closed(section);
  if (has_dot(name)) {
    unknown.dotted = true;
    if (key_kind(unknown.key) != KeyKind::kUnknown) unknown.suggestion = unknown.key;
    return unknown;
  }
  const std::string trimmed = trim(name);
  if (trimmed != name && key_kind(join(section, trimmed)) != KeyKind::kUnknown) {
    unknown.suggestion = join(section, trimmed);
    unknown.stray_space = true;
    return unknown;
  }
  if (is_switched_off(section, name)) return unknown;
  const std::string folded = fold(trimmed);
  unknown.suggestion = other_depth(section, folded);
  if (!unknown.suggestion.empty()) return unknown;
  const std::string near = nearest_member(section, folded);
  if (!near.empty()) unknown.suggestion = join(section, near);
  return unknown;
}

std::vector<UnknownKey> unknown_keys(const Json& config) {
  std::vector<UnknownKey> out;
  if (config.is_object()) walk(config, config, "", &out);
  return out;
}

std::string why_refused(const UnknownKey& unknown) {
  const std::string name = "unknown key '" + unknown.key + "': ";
  if (unknown.suggestion.empty() && !unknown.refused) return "";
  if (unknown.dotted) return name + "DeepSpeed's keys have no dots: nest it, as " + nested(unknown.key);
  if (!unknown.suggestion.empty()) return name + "did you mean '" + unknown.suggestion + "'?";
  return name + "DeepSpeed refuses every key that it does not know in this section";
}

}  // namespace dsat::config
