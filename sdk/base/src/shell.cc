// Quotes with single quotes, inside which a shell changes nothing. A single quote itself is written outside.
#include "dsat/base/shell.h"

#include <algorithm>

namespace dsat {

namespace {

constexpr std::string_view kNameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
constexpr std::string_view kDigits = "0123456789";

std::string in_quotes(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

std::string shell_quote(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (kNameCharacters.find(c) != std::string_view::npos) ||
           std::string_view("@%+=:,./-").find(c) != std::string_view::npos;
  });
  return plain ? std::string(word) : in_quotes(word);
}

std::string shell_join(const std::vector<std::string>& argv) {
  std::string line;
  for (const std::string& word : argv) {
    const bool would_assign = line.empty() && word.find('=') != std::string::npos;
    line += (line.empty() ? "" : " ") + (would_assign ? in_quotes(word) : shell_quote(word));
  }
  return line;
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && name.find_first_not_of(kNameCharacters) == std::string_view::npos &&
         kDigits.find(name.front()) == std::string_view::npos;
}

std::string shell_command(std::string_view folder, const std::vector<std::string>& variables,
                          const std::vector<std::string>& argv) {
  std::string assigned, given;
  for (const std::string& variable : variables) {
    const size_t equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : variable.substr(equals + 1);
    if (is_variable_name(name)) {
      assigned += name + "=" + shell_quote(value) + " ";
    } else {
      given += (given.empty() ? "env " : "") + in_quotes(name + "=" + value) + " ";
    }
  }
  return "cd " + shell_quote(folder) + " && " + assigned + given + shell_join(argv);
}

}  // namespace dsat
