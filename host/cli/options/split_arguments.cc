#include "options/split_arguments.h"

#include <algorithm>

#include "dsat/error.h"

namespace dsat::cli {
namespace {

bool looks_like_option(const std::string& token) { return token.size() > 1 && token[0] == '-'; }

bool is_stage(const std::string& token) { return token.size() == 1 && token[0] >= '0' && token[0] <= '3'; }

bool is_number(const std::string& token) {
  const size_t sign = !token.empty() && (token[0] == '-' || token[0] == '+') ? 1 : 0;
  return token.size() > sign && std::all_of(token.begin() + static_cast<std::ptrdiff_t>(sign), token.end(),
                                            [](char c) { return c >= '0' && c <= '9'; });
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
  Walker(const OptionSet& set, const Tokens& arguments) : set_(set), arguments_(arguments) {}

  bool done() const { return at_ == arguments_.size(); }
  const std::string& token() const { return arguments_[at_]; }
  void skip() { ++at_; }
  Tokens remaining() const { return {arguments_.begin() + static_cast<std::ptrdiff_t>(at_), arguments_.end()}; }

  // Takes the option at hand with its values; a switch has none.
  Tokens take(const Option& option, const Spelling& spelling) {
    ++at_;
    switch (option.takes) {
      case Takes::nothing:
        if (spelling.attached) throw Error(spelling.name + " takes no value: drop '=" + *spelling.attached + "'");
        return {};
      case Takes::optional:
        return {spelling.attached.value_or("true")};
      case Takes::stages:
        return take_stages(option, spelling);
      case Takes::several:
        return take_several(option, spelling);
      case Takes::value:
        break;
    }
    if (spelling.attached ? spelling.attached->empty() : !value_follows()) {
      throw Error(display(option) + " needs a value: " + spelling.name + " " + option.value_name);
    }
    return {spelling.attached ? *spelling.attached : arguments_[at_++]};
  }

 private:
  // "-1" is a value, if a wrong one; "--" and options of ours are not.
  bool value_follows() const {
    return !done() && !token().empty() && token().rfind("--", 0) != 0 && set_.find(Spelling(token()).name) == nullptr;
  }

  Tokens take_several(const Option& option, const Spelling& spelling) {
    Tokens values;
    if (spelling.attached) values.push_back(*spelling.attached);
    while (!spelling.attached && !done() && !looks_like_option(token())) values.push_back(arguments_[at_++]);
    if (values.empty() || values.front().empty()) {
      throw Error(display(option) + " needs a value: " + spelling.name + " " + option.value_name);
    }
    return values;
  }

  Tokens take_stages(const Option& option, const Spelling& spelling) {
    const std::string rule = display(option) + " takes ZeRO stages, one or more of 0 1 2 3";
    Tokens stages;
    if (spelling.attached) {
      if (!is_stage(*spelling.attached)) throw Error(rule + ", not '" + *spelling.attached + "'");
      return {*spelling.attached};
    }
    while (!done() && is_stage(token())) stages.push_back(arguments_[at_++]);
    if (!done() && is_number(token())) throw Error(rule + ", not '" + token() + "'");
    if (stages.empty()) throw Error(rule + ": " + spelling.name + " " + option.value_name);
    return stages;
  }

  const OptionSet& set_;
  const Tokens& arguments_;
  size_t at_ = 0;
};

[[noreturn]] void refuse_unknown(const OptionSet& set, const std::string& spelling) {
  const std::string nearest = set.nearest(spelling);
  throw Error("unknown option " + spelling + (nearest.empty() ? "" : ", did you mean " + nearest + "?") +
              (nearest.empty() ? ": see --help for those there are; a command goes after --" : ""));
}

bool given(const Tokens& options, const std::string& name) {
  return std::any_of(options.begin(), options.end(),
                     [&](const std::string& o) { return Spelling(o).name == "--" + name; });
}

}  // namespace

Split split(const OptionSet& set, const Tokens& arguments, FreeTokens free_tokens) {
  Split result;
  std::vector<const OptionSet::Clash*> clashes;
  Walker walker(set, arguments);
  while (!walker.done()) {
    if (walker.token() == "--") {
      walker.skip();
      result.after_dashes = true;
      break;
    }
    if (!looks_like_option(walker.token())) {
      if (free_tokens == FreeTokens::end_options) break;
      result.rest.push_back(walker.token());
      walker.skip();
      continue;
    }
    const Spelling spelling(walker.token());
    const Option* option = set.find(spelling.name);
    if (const OptionSet::Clash* clash = set.clash(spelling.name)) {
      if (option == nullptr) throw Error(clash->message);
      clashes.push_back(clash);
    }
    if (option == nullptr) refuse_unknown(set, spelling.name);
    if (!option->refusal.empty()) throw Error(option->refusal);
    const Tokens values = walker.take(*option, spelling);
    if (option->takes == Takes::nothing) result.options.push_back("--" + option->name);
    for (const std::string& value : values) result.options.push_back("--" + option->name + "=" + value);
  }
  for (std::string& token : walker.remaining()) result.rest.push_back(std::move(token));
  for (const OptionSet::Clash* clash : clashes) {
    const bool settled = std::all_of(clash->needs.begin(), clash->needs.end(),
                                     [&](const std::string& name) { return given(result.options, name); });
    if (!settled) throw Error(clash->message);
  }
  return result;
}

Preview preview(const OptionSet& set, const Tokens& arguments, FreeTokens free_tokens) {
  Preview found;
  Walker walker(set, arguments);
  while (!walker.done() && walker.token() != "--") {
    if (!looks_like_option(walker.token())) {
      if (free_tokens == FreeTokens::end_options) break;
      walker.skip();
      continue;
    }
    const Spelling spelling(walker.token());
    const Option* option = set.find(spelling.name);
    if (option == nullptr) {
      walker.skip();
      // Perhaps a plugin's option, and what follows perhaps its value.
      if (!spelling.attached && !walker.done() && !looks_like_option(walker.token())) walker.skip();
      continue;
    }
    Tokens values;
    try {
      values = walker.take(*option, spelling);
    } catch (const Error&) {
      // split() says what is wrong, once the plugins' options are known.
    }
    if (option->name == "searcher" && !values.empty()) found.searcher = values.front();
    if (option->name == "profiler" && !values.empty()) found.profiler = values.front();
    if (option->name == "ds-config" && !values.empty()) found.ds_config = values.front();
    found.autotuning |= option->name == "autotuning";
    found.help |= option->name == "help";
    found.version |= option->name == "version";
  }
  return found;
}

}  // namespace dsat::cli
