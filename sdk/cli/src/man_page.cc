// Writes roff with the macros of man(7). A hyphen is written as one that can be copied.
#include <fmt/format.h>

#include <algorithm>

#include "dsat/cli/manual.h"

namespace dsat::cli_kit {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  const bool is_request = !result.empty() && (result[0] == '.' || result[0] == '\'');
  return is_request ? "\\&" + result : result;
}

std::string spellings(const Option& option) {
  std::string text;
  for (const std::string& alias : option.aliases) text += fmt::format("\\fB{}\\fR, ", escaped(alias));
  text += fmt::format("\\fB{}\\fR", escaped("--" + option.name));
  if (option.takes != Takes::nothing) text += fmt::format(" \\fI{}\\fR", escaped(option.value_name));
  return text;
}

std::string options_text(const OptionSet& set, const char* heading) {
  std::string text, group;
  for (const Option& option : set.options()) {
    if (option.hidden) continue;
    if (option.group != group && option.group != "Options")
      text += fmt::format("{} {}\n", heading, escaped(option.group));
    group = option.group;
    text += fmt::format(".TP\n{}\n{}\n", spellings(option), escaped(option.help));
    if (!option.default_shown.empty()) text += fmt::format("(default: {})\n", escaped(option.default_shown));
  }
  return text;
}

std::string name_of(const Manual& manual, const ManualCommand& command) {
  return command.word.empty() ? manual.program : manual.program + " " + command.word;
}

std::string synopsis(const Manual& manual) {
  std::string text;
  for (const ManualCommand& command : manual.commands) {
    text += fmt::format("{}.B {}\n{}\n", text.empty() ? "" : ".br\n", escaped(name_of(manual, command)),
                        escaped(command.synopsis));
  }
  return text;
}

std::string paragraphs(const std::string& text) {
  std::string result;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    result += line.empty() ? ".PP\n" : escaped(line) + "\n";
    begin = end + 1;
  }
  return result;
}

}  // namespace

std::string man_page(const Manual& manual) {
  std::string text = fmt::format(".TH {} 1 \"\" \"dsat {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n", manual.program,
                                 DSAT_VERSION, escaped(manual.program), escaped(manual.summary));
  text += ".SH SYNOPSIS\n" + synopsis(manual) + ".SH DESCRIPTION\n" + paragraphs(manual.description);
  text += ".SH OPTIONS\n" + options_text(manual.commands.front().options, ".SS");
  for (size_t i = 1; i < manual.commands.size(); ++i) {
    const ManualCommand& command = manual.commands[i];
    if (i == 1) text += ".SH SUB-COMMANDS\n";
    text += fmt::format(".SS {} {}\n{}.\n", escaped(command.word), escaped(command.synopsis), escaped(command.summary));
    text += options_text(command.options, ".PP\n");
  }
  return text + manual.end;
}

}  // namespace dsat::cli_kit
