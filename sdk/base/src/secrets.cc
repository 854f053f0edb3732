// Cuts names into words, "wandbApiKey" into wandb, api and key, and looks at the last ones. A text is read from left to
// right; at each place a name with its value, an address or a known token is tried.
#include "dsat/base/secrets.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <vector>

namespace dsat {
namespace {

// The list: a name that ends so names a secret.
constexpr std::string_view kLastWords[] = {
    "token",     "password", "passwd",     "passphrase",  "passcode",  "pwd",           "secret", "secrets",
    "apikey",    "apitoken", "credential", "credentials", "auth",      "authorization", "bearer", "cookie",
    "signature", "sig",      "dsn",        "webhook",     "accesskey", "secretkey",     "pat"};
constexpr std::string_view kLastPairs[][2] = {
    {"api", "key"},     {"access", "key"},  {"secret", "key"},  {"private", "key"},       {"auth", "key"},
    {"account", "key"}, {"signing", "key"}, {"license", "key"}, {"encryption", "key"},    {"storage", "key"},
    {"shared", "key"},  {"ssh", "key"},     {"db", "pass"},     {"user", "pass"},         {"smtp", "pass"},
    {"webhook", "url"}, {"key", "base"},    {"access", "keys"}, {"connection", "string"}, {"api", "keys"}};
// Words before `token` in the names of tokenizers and of counts: "pad_token", "num_token".
constexpr std::string_view kBeforeHarmlessToken[] = {
    "pad",     "eos",        "bos",  "unk",   "mask", "cls",  "sep",   "image",  "video", "audio",
    "special", "additional", "num",  "max",   "min",  "per",  "next",  "first",  "last",  "start",
    "end",     "stop",       "new",  "extra", "text", "seq",  "input", "output", "blank", "word",
    "prompt",  "decoder",    "drop", "vocab", "one",  "each", "by"};
// Secrets by their form, and the least number of characters after the prefix.
struct Form {
  std::string_view prefix;
  size_t least;
};
constexpr Form kForms[] = {{"hf_", 20},         {"sk-", 20},    {"ghp_", 20},  {"gho_", 20},    {"ghs_", 20},
                           {"github_pat_", 20}, {"glpat-", 16}, {"AKIA", 16},  {"ASIA", 16},    {"AIza", 30},
                           {"xoxb-", 16},       {"xoxp-", 16},  {"xoxa-", 16}, {"dop_v1_", 20}, {"npm_", 30},
                           {"pypi-", 30},       {"eyJ", 40}};

template <class List>
bool has(const List& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_name(char c) { return is_word(c) || c == '_' || c == '-' || c == '.'; }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) { return lower(c); });
  return result;
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < name.size(); ++i) {
    const bool begins = i > 0 && is_upper(name[i]) && is_word(name[i - 1]) && !is_upper(name[i - 1]);
    if ((!is_word(name[i]) || begins) && !words.back().empty()) words.emplace_back();
    if (is_word(name[i])) words.back() += lower(name[i]);
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Reads one text.
class Masking {
 public:
  explicit Masking(std::string_view text) : text_(text) {}

  std::string masked() {
    while (at_ < text_.size()) {
      if (!mask_address() && !(begins_name() && (mask_named() || mask_form()))) keep(1);
    }
    return std::move(out_);
  }

 private:
  char peek(size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  void keep(size_t count) {
    out_ += text_.substr(at_, count);
    at_ += count;
  }
  void mask_until(size_t end) {
    out_ += kSecretMask;
    at_ = end;
  }
  bool begins_name() const { return is_name(text_[at_]) && (at_ == 0 || !is_name(text_[at_ - 1])); }
  size_t end_of_name() const {
    return static_cast<size_t>(std::find_if_not(text_.begin() + static_cast<long>(at_), text_.end(), is_name) -
                               text_.begin());
  }

  // ://user:password@
  bool mask_address() {
    if (text_.compare(at_, 3, "://") != 0) return false;
    const size_t begin = at_ + 3, end = text_.find_first_of("@/ \t\r\n\"'<>?#", begin);
    if (end == std::string_view::npos || text_[end] != '@' || end == begin) return false;
    const bool is_web = at_ >= 4 && (text_.substr(at_ - 4, 4) == "http" || text_.substr(at_ - 4, 4) == "ttps");
    if (!is_web && text_.substr(begin, end - begin).find(':') == std::string_view::npos) return false;  // ssh://git@
    keep(3);
    mask_until(end);
    return true;
  }

  bool mask_form() {
    const std::string_view word = text_.substr(at_, end_of_name() - at_);
    const bool found = std::any_of(std::begin(kForms), std::end(kForms), [&](const Form& form) {
      return word.size() >= form.prefix.size() + form.least && word.substr(0, form.prefix.size()) == form.prefix;
    });
    const size_t end = end_of_name();
    found ? mask_until(end) : keep(word.size());
    return true;
  }

  // NAME=value, "name": "value", --name value
  bool mask_named() {
    const size_t end = end_of_name();
    const std::string_view name = text_.substr(at_, end - at_);
    size_t begin = end;
    if (peek(begin) == '"' || peek(begin) == '\'') ++begin;
    const size_t after_blanks = skip_blanks(begin);
    const char sign = peek(after_blanks);
    bool needs_form = false;
    const bool may_have_value = sign == '=' || sign == ':' || name[0] == '-';
    if (!may_have_value || !names_secret(name)) return false;
    if (sign == '=' || (sign == ':' && peek(after_blanks + 1) != '/')) {
      begin = skip_blanks(after_blanks + 1);
      needs_form = sign == ':' && peek(begin) != '"' && peek(begin) != '\'';  // "invalid token: line 3"
    } else if (name[0] == '-' && after_blanks > end && begin == end && sign != '-') {
      begin = after_blanks;
    } else {
      return false;
    }
    const bool is_quoted = peek(begin) == '"' || peek(begin) == '\'';
    size_t last = end_of_value(begin);
    const std::string scheme = lower(text_.substr(begin, last - begin));
    if (scheme == "bearer" || scheme == "basic" || scheme == "token") last = end_of_value(begin = skip_blanks(last));
    begin += is_quoted ? 1 : 0;
    constexpr size_t kLeastBare = 6;
    if (last <= begin || (needs_form && last - begin < kLeastBare) ||
        is_harmless(name, text_.substr(begin, last - begin))) {
      return false;
    }
    keep(begin - at_);
    mask_until(last);
    return true;
  }

  size_t skip_blanks(size_t at) const {
    while (is_blank(peek(at)) && at < text_.size()) ++at;
    return at;
  }
  size_t end_of_value(size_t begin) const {
    const char quote = peek(begin);
    const size_t end =
        quote == '"' || quote == '\'' ? text_.find(quote, begin + 1) : text_.find_first_of(" \t\r\n\"',;&)}]", begin);
    return std::min(end, text_.size());
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

bool names_secret(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  if (words.empty()) return false;
  const std::string& last = words.back();
  const std::string before = words.size() > 1 ? words[words.size() - 2] : "";
  if (last == "pwd" && (before.empty() || before == "old")) return false;  // the shell's folder
  if (last == "token" && has(kBeforeHarmlessToken, before)) return false;
  if (has(kLastWords, last)) return true;
  return std::any_of(std::begin(kLastPairs), std::end(kLastPairs),
                     [&](const auto& pair) { return before == pair[0] && last == pair[1]; });
}

bool is_harmless(std::string_view name, std::string_view value) {
  constexpr std::string_view kWords[] = {"", "true", "false", "none", "null", "auto", "yes", "no", "on", "off"};
  if (value.substr(0, 1) == "$" || value == kSecretMask || has(kWords, lower(value))) return true;
  const bool counts = std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
  return counts && words_of(name).back() == "token";
}

std::string mask_secrets(std::string_view text) { return Masking(text).masked(); }

}  // namespace dsat
