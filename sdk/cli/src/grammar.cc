// Walks over the tokens once. Each option takes the tokens that its declaration allows. Other tokens are the command,
// operands, or another program's, depending on the grammar.
#include "dsat/cli/grammar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "dsat/base/split.h"
#include "dsat/cli/read_value.h"
#include "dsat/error.h"

namespace dsat::cli_kit {
namespace {

bool looks_like_option(const std::string& token) { return token.size() > 1 && token[0] == '-'; }

bool is_number(const std::string& token) {
  const size_t sign = !token.empty() && (token[0] == '-' || token[0] == '+') ? 1 : 0;
  return token.size() > sign && token.find_first_not_of("0123456789", sign) == std::string::npos;
}

bool ends_in_json(const std::string& token) {
  constexpr std::string_view kEnding = ".json";
  return token.size() >= kEnding.size() && token.compare(token.size() - kEnding.size(), kEnding.size(), kEnding) == 0;
}

// A token cut at its first "=".
struct Spelling {
  explicit Spelling(const std::string& token) : name(token.substr(0, token.find('='))) {
    if (name.size() < token.size()) attached = token.substr(name.size() + 1);
  }
  std::string name;
  std::optional<std::string> attached;
};

class Walker {
 public:
  Walker(const OptionSet& set, const Tokens& arguments, Grammar grammar)
      : set_(set), arguments_(arguments), grammar_(grammar) {}

  bool done() const { return at_ == arguments_.size(); }
  const std::string& token() const { return arguments_[at_]; }
  const std::string& pass() { return arguments_[at_++]; }
  Tokens remaining() const { return {arguments_.begin() + static_cast<std::ptrdiff_t>(at_), arguments_.end()}; }

  // nullptr: the token is no option of this program.
  const Option* option_of(const Spelling& spelling) const {
    if (grammar_ != Grammar::shared) return set_.find(spelling.name);
    const Option* const option = set_.find_exactly(spelling.name);
    const bool no_switch = option != nullptr && option->takes == Takes::nothing && spelling.attached;
    return no_switch ? nullptr : option;
  }

  // Takes the current option with its values, in the form that Values reads.
  Tokens take(const Option& option, const Spelling& spelling) {
    ++at_;
    const std::string name = "--" + option.name;
    const auto valued = [&](const std::string& value) { return Tokens{name + "=" + value}; };
    switch (option.takes) {
      case Takes::nothing:
        if (spelling.attached) throw Error(fmt::format("{} takes no value: drop '={}'", name, *spelling.attached));
        return {name};
      case Takes::attached:
        if (!spelling.attached) refuse_apart(spelling);
        return valued(spelling.attached.value_or("true"));
      case Takes::word:
        if (spelling.attached) return valued(*spelling.attached);
        return !done() && option.has_word(token()) ? valued(pass()) : Tokens{name};
      case Takes::config_file:
        if (spelling.attached) return valued(*spelling.attached);
        return !done() && ends_in_json(token()) ? valued(pass()) : Tokens{name};
      case Takes::words:
        return named(name, take_words(option, spelling));
      case Takes::several:
        return named(name, take_several(option, spelling));
      case Takes::value:
        break;
    }
    if (is_absent(option, spelling)) return {};
    if (spelling.attached ? !may_be_value(*spelling.attached) : !value_follows()) refuse_missing(option, spelling);
    return valued(spelling.attached ? *spelling.attached : pass());
  }

 private:
  // Takes a value that means "not given".
  bool is_absent(const Option& option, const Spelling& spelling) {
    if (!spelling.attached && done()) return false;
    const std::string& value = spelling.attached ? *spelling.attached : token();
    const auto& absent = option.absent_values;
    if (std::find(absent.begin(), absent.end(), value) == absent.end()) return false;
    if (!spelling.attached) ++at_;
    return true;
  }

  static Tokens named(const std::string& name, const Tokens& values) {
    Tokens tokens;
    for (const std::string& value : values) tokens.push_back(name + "=" + value);
    return tokens;
  }

  [[noreturn]] static void refuse_missing(const Option& option, const Spelling& spelling) {
    throw Error(fmt::format("{} needs a value: {} {}", display(option), spelling.name, option.value_name));
  }

  // Refuses "--flag true", where the word would begin the user's command.
  void refuse_apart(const Spelling& spelling) const {
    if (done() || grammar_ == Grammar::shared) return;
    for (const char* word : {"true", "false"}) {
      if (token() != word) continue;
      throw Error(fmt::format("{0} takes its value with '=': write {0}={1}", spelling.name, word));
    }
  }

  bool may_be_value(const std::string& text) const { return grammar_ == Grammar::shared || !text.empty(); }

  // "-1" counts as a value, so that it is refused as one; a text with blanks does too, as in argparse. "--" and known
  // options do not.
  bool value_follows() const {
    if (done() || grammar_ == Grammar::shared) return !done();
    const bool is_option = token().rfind("--", 0) == 0 && token().find(' ') == std::string::npos;
    return !token().empty() && !is_option && set_.find(Spelling(token()).name) == nullptr;
  }

  Tokens take_several(const Option& option, const Spelling& spelling) {
    Tokens values;
    if (spelling.attached) values.push_back(*spelling.attached);
    while (!spelling.attached && !done() && !looks_like_option(token())) values.push_back(pass());
    if (values.empty() || values.front().empty()) refuse_missing(option, spelling);
    return values;
  }

  // Refuses a number that is not among the words. It would begin the user's command, which is certainly a slip.
  Tokens take_words(const Option& option, const Spelling& spelling) {
    const std::string rule = fmt::format("{} takes one or more of {}", display(option), fmt::join(option.words, " "));
    const auto are_words = [&](const Tokens& parts) {
      return std::all_of(parts.begin(), parts.end(), [&](const std::string& part) { return option.has_word(part); });
    };
    if (spelling.attached) {
      const Tokens parts = dsat::split(*spelling.attached, ',');
      if (!are_words(parts)) throw Error(fmt::format("{}, not '{}'", rule, *spelling.attached));
      if (!done() && option.has_word(token()) && is_number(token())) {
        throw Error(fmt::format("{0}={1} ends before '{2}': write {0}={1},{2} or {0} {1} {2}", spelling.name,
                                *spelling.attached, token()));
      }
      return parts;
    }
    Tokens words;
    while (!done()) {
      const Tokens parts = dsat::split(token(), ',');
      if (!are_words(parts)) break;
      words.insert(words.end(), parts.begin(), parts.end());
      pass();
    }
    if (!done() && is_number(dsat::split(token(), ',').front()))
      throw Error(fmt::format("{}, not '{}'", rule, token()));
    if (words.empty()) throw Error(fmt::format("{}: {} {}", rule, spelling.name, option.value_name));
    return words;
  }

  const OptionSet& set_;
  const Tokens& arguments_;
  const Grammar grammar_;
  size_t at_ = 0;
};

// In `--autotuning train.py --deepspeed ...` the mistake is the word in the place of a choice, not the option after it.
void check_choices(const OptionSet& set, const Tokens& given) {
  for (const std::string& token : given) {
    const Spelling spelling(token);
    const Option* option = set.find(spelling.name);
    const bool is_choice = option != nullptr && option->kind == ValueKind::choice && spelling.attached;
    if (is_choice) read_choice(display(*option), *spelling.attached, option->words);
  }
}

[[noreturn]] void refuse_unknown(const OptionSet& set, const std::string& spelling) {
  const std::string nearest = set.nearest(spelling);
  if (!nearest.empty()) throw Error(fmt::format("unknown option {}, did you mean {}?", spelling, nearest));
  throw Error(fmt::format("unknown option {}: see --help for the options; a command goes after --", spelling));
}

// A bare name with two owners belongs to the program only if the user spelt out the other owners' options.
void settle_clashes(const std::vector<const OptionSet::Clash*>& clashes, const Tokens& options) {
  const auto given = [&](const std::string& name) {
    return std::any_of(options.begin(), options.end(),
                       [&](const std::string& option) { return Spelling(option).name == "--" + name; });
  };
  for (const OptionSet::Clash* clash : clashes) {
    if (!std::all_of(clash->needs.begin(), clash->needs.end(), given)) throw Error(clash->message);
  }
}

}  // namespace

Split split(const OptionSet& set, const Tokens& arguments, Grammar grammar) {
  Split result;
  std::vector<const OptionSet::Clash*> clashes;
  Walker walker(set, arguments, grammar);
  while (!walker.done()) {
    const Spelling spelling(walker.token());
    const Option* option = walker.option_of(spelling);
    if (grammar == Grammar::shared && option == nullptr) {
      result.rest.push_back(walker.pass());
      continue;
    }
    if (walker.token() == "--") {
      walker.pass();
      result.after_dashes = true;
      break;
    }
    if (!looks_like_option(walker.token())) {
      if (grammar == Grammar::command) break;
      result.rest.push_back(walker.pass());
      continue;
    }
    if (const OptionSet::Clash* clash = set.clash(spelling.name)) {
      if (option == nullptr) throw Error(clash->message);
      clashes.push_back(clash);
    }
    if (option == nullptr) {
      check_choices(set, result.options);
      refuse_unknown(set, spelling.name);
    }
    for (std::string& token : walker.take(*option, spelling)) result.options.push_back(std::move(token));
  }
  for (std::string& token : walker.remaining()) result.rest.push_back(std::move(token));
  settle_clashes(clashes, result.options);
  return result;
}

Tokens known_options(const OptionSet& set, const Tokens& arguments, Grammar grammar) {
  Tokens found;
  Walker walker(set, arguments, grammar);
  while (!walker.done() && walker.token() != "--") {
    if (!looks_like_option(walker.token())) {
      if (grammar == Grammar::command) break;
      walker.pass();
      continue;
    }
    const Spelling spelling(walker.token());
    const Option* option = walker.option_of(spelling);
    if (option == nullptr) {
      walker.pass();
      // This may be a plugin's option, followed by its value.
      if (!spelling.attached && !walker.done() && !looks_like_option(walker.token())) walker.pass();
      continue;
    }
    try {
      for (std::string& token : walker.take(*option, spelling)) found.push_back(std::move(token));
    } catch (const Error&) {
      // split() reports the error, once all options are known.
    }
  }
  return found;
}

}  // namespace dsat::cli_kit
