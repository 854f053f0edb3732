// Boost.Program_options matches tokens with the declared options, then each value is checked by its kind. Only texts
// are kept, and readers convert again, because a command line is short.
#include "dsat/cli/values.h"

#include <algorithm>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/value_semantic.hpp>

#include "dsat/base/numbers.h"
#include "dsat/base/units.h"
#include "dsat/cli/read_value.h"
#include "dsat/error.h"
#include "semantic.h"

namespace dsat::cli_kit {
namespace {

namespace po = boost::program_options;

void check(const Option& option, const std::string& text) {
  const std::string shown = display(option);
  switch (option.kind) {
    case ValueKind::text:
      break;
    case ValueKind::path:
      if (text.empty()) throw Error(shown + " is empty: name a path");
      break;
    case ValueKind::integer:
      if (!option.has_word(text)) read_integer(shown, text, option.low, option.high, option.words);
      break;
    case ValueKind::number:
      read_number(shown, text, option.low);
      break;
    case ValueKind::size:
      read_size(shown, text, option.low > 0 ? static_cast<uint64_t>(option.low) : 1);
      break;
    case ValueKind::duration:
      read_duration(shown, text);
      break;
    case ValueKind::choice:
      read_choice(shown, text, option.words);
      break;
  }
}

// Replaces Boost's own styles: the grammar's tokens are unambiguous. An empty value counts as a value.
std::vector<po::option> options_of_tokens(Tokens& tokens) {
  std::vector<po::option> options;
  for (const std::string& token : tokens) {
    constexpr size_t kDashes = 2;
    const size_t equals = std::min(token.find('='), token.size());
    options.emplace_back();
    options.back().string_key = token.substr(kDashes, equals - kDashes);
    if (equals < token.size()) options.back().value = {token.substr(equals + 1)};
  }
  tokens.clear();
  return options;
}

}  // namespace

Values::Values(const OptionSet& set, const Tokens& options) {
  po::options_description known;
  for (const Option& option : set.options()) known.add_options()(option.name.c_str(), semantic(option));
  std::map<std::string, int> occurrences;
  const auto parsed = po::command_line_parser(options).options(known).extra_style_parser(options_of_tokens).run();
  for (const po::option& option : parsed.options) {
    const Option& declared = *set.find_exactly("--" + option.string_key);
    std::vector<std::string>& texts = texts_[declared.name];
    const bool once = declared.again == Again::is_refused && declared.takes != Takes::nothing;
    if (++occurrences[declared.name] > 1 && once) throw Error(display(declared) + " is given twice: give it once");
    for (const std::string& text : option.value) {
      check(declared, text);
      texts.push_back(text);
    }
  }
}

std::optional<std::string> Values::text(const std::string& name) const {
  const auto it = texts_.find(name);
  if (it == texts_.end() || it->second.empty()) return std::nullopt;
  return it->second.back();
}

std::vector<std::string> Values::texts(const std::string& name) const {
  const auto it = texts_.find(name);
  return it == texts_.end() ? std::vector<std::string>() : it->second;
}

std::optional<int64_t> Values::integer(const std::string& name) const {
  const std::optional<std::string> given = text(name);
  return given ? parse_integer(*given) : std::nullopt;
}

std::optional<int> Values::small_integer(const std::string& name) const {
  const std::optional<int64_t> value = integer(name);
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<double> Values::number(const std::string& name) const {
  const std::optional<std::string> given = text(name);
  return given ? parse_number(*given) : std::nullopt;
}

std::optional<uint64_t> Values::size(const std::string& name) const {
  const std::optional<std::string> given = text(name);
  if (!given) return std::nullopt;
  return parse_size(*given);
}

std::optional<std::chrono::milliseconds> Values::duration(const std::string& name) const {
  const std::optional<std::string> given = text(name);
  if (!given) return std::nullopt;
  return parse_duration(*given);
}

}  // namespace dsat::cli_kit
